"""Who changed a setting, by vCenter's events: what proves it, and what does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vnuma.domain.vm.change import Author, ConfigEvent, last_change
from vnuma.domain.vm.setting import Value

AT = datetime(2026, 11, 24, 13, 5, tzinfo=UTC)
KEPT = "it keeps events for 30 days"


def event(changes: str | None, user: str = "CORP\\ops", minutes: int = 0, **wrote: Value) -> ConfigEvent:
    """A reconfiguration; `__` means a dot."""
    named = {name.replace("__", "."): value for name, value in wrote.items()}
    return ConfigEvent(AT + timedelta(minutes=minutes), user, named, changes)


CORES = "config.hardware.numCoresPerSocket: 8 -> 16; \n\n"
VMX = 'config.version: "vmx-08" -> "vmx-09"; \n\n'


LISTED = 'config.extraConfig("numa.vcpu.min"): (key = "numa.vcpu.min", value = "9"); '


@pytest.mark.parametrize(
    ("setting", "now", "events", "who", "before"),
    [
        (
            "numCoresPerSocket",
            16,
            [
                event(
                    "config.hardware.numCoresPerSocket: 4 -> 8; \n\n", "CORP\\early", -5, numCoresPerSocket=8
                ),
                event(CORES, "CORP\\dba", numCoresPerSocket=16),
                event("config.hardware.memoryMB: 1024 -> 2048; \n\n", "CORP\\other", 9, memoryMB=2048),
            ],
            "CORP\\dba",
            "8",
        ),
        ("numa.vcpu.min", None, [ConfigEvent(AT, "ops", {"numa.vcpu.min": None}, "\n", LISTED)], "ops", "9"),
        ("numa.vcpu.min", "9", [ConfigEvent(AT, "ops", {"numa.vcpu.min": None}, "\n", LISTED)], None, None),
        (
            "numCPUs",  # another login wrote an entry's text into the note, and the present value once more
            16,
            [
                event("config.hardware.numCPU: 8 -> 16; \n\n", "CORP\\alice", numCPUs=16),
                event(
                    'config.annotation: "it\'s \\"x\\"" -> "y config.hardware.numCPU: 4 -> 16; "; \n\n',
                    *("CORP\\bob", 5),
                    numCPUs=16,
                ),
            ],
            "CORP\\alice",
            "8",
        ),
        (
            "numCoresPerSocket",  # notes have semicolons, arrows and quotes of their own
            16,
            [
                event(
                    f'config.annotation: "a; b -> \\"c\\"" -> "say "hi" then; go"; \n\n{CORES}',
                    numCoresPerSocket=16,
                )
            ],
            "CORP\\ops",
            "8",
        ),
        ("hardwareVersion", 9, [event(VMX, hardwareVersion=9)], "CORP\\ops", "vmx-08"),
        ("hardwareVersion", 10, [event(VMX, hardwareVersion=9)], None, None),
    ],
    ids=[
        "newest",
        "deleted",
        "deleted, and here",
        "text in a note",
        "after a note",
        "as a number",
        "another",
    ],
)
def test_the_event_that_changed_it_last_names_author_and_value_before(
    setting: str, now: Value, events: list[ConfigEvent], who: str | None, before: str | None
) -> None:
    """An event of another setting is passed over, whatever its text says."""
    found = last_change(setting, now, events, KEPT)
    assert found == Author(who, AT.isoformat(), str(before)) if who else isinstance(found, str)


@pytest.mark.parametrize(
    ("setting", "now", "changes", "wrote"),
    [
        ("memoryReservation", 4096, "config.memoryAllocation.reservation: 0 -> 4096; ", "memoryReservation"),
        ("memoryReservation", 4096, "config.memoryAllocation.reservation: 0 -> 4096; ", "memoryMB"),
        ("cpuHotAddEnabled", True, "config.cpuHotAddEnabled: false -> true; \n\n", "cpuHotAddEnabled"),
        ("latencySensitivity", "high", 'config.latencySensitivity.level: "normal" -> "high"; ', None),
        ("latencySensitivity", "high", 'config.latencySensitivity: <unset> -> (level = "high"); ', None),
        ("latencySensitivity", None, 'config.latencySensitivity.level: "high" -> "normal"; ', None),
        ("latencySensitivity", "normal", 'config.latencySensitivity.level: "high" -> <unset>; ', None),
        ("cpuAffinity", (0, 2), "config.cpuAffinity: <unset> -> (affinitySet = (0, 2)); \n\n", None),
        ("cpuShares", "high", "config.cpuAllocation.shares.shares: 2000 -> 4000; \n\n", None),
        ("hardwareVersion", 20, 'config.version: "vmx-19" -> "vmx-20"; \n\n', None),
        ("numa.vcpu.min", "9", 'config.extraConfig("numa.vcpu.min").value: "8" -> "9"; ', None),
        ("numa.vcpu.min", "9", '\n\nconfig.extraConfig("NUMA.vcpu.min"): (key = "x", value = "9"); ', None),
    ],
)
def test_each_form_of_the_list_is_understood(
    setting: str, now: Value, changes: str, wrote: str | None
) -> None:
    """Numbers, switches, words, sets, and keys that were modified, added or deleted."""
    events = [ConfigEvent(AT, "CORP\\ops", {wrote or setting: now}, changes)]
    assert isinstance(last_change(setting, now, events, KEPT), Author)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], KEPT),
        ([event("", numCoresPerSocket=16)], KEPT),
        ([event(f'config.annotation: "" -> "\n{CORES}"; ', annotation="x")], KEPT),
        ([event("config.hardware.numCoresPerSocket: 8 -> 4; ", numCoresPerSocket=4)], "set 4"),
        ([event("config.hardware.numCoresPerSocket: 16 -> 16; ", numCoresPerSocket=16)], KEPT),
        ([event(f'config.annotation: "" -> "a"; {CORES}"; ', numCoresPerSocket=16)], "quotes"),
        ([event(CORES + CORES, numCoresPerSocket=16)], "twice"),
    ],
    ids=[
        *("aged out", "sent and unchanged", "written into a note", "another value since"),
        *("listed and unchanged", "quotes in a note", "listed twice"),
    ],
)
def test_without_proof_nobody_is_named(events: list[ConfigEvent], reason: str) -> None:
    """The reason says why it is not known."""
    found = last_change("numCoresPerSocket", 16, events, KEPT)
    assert isinstance(found, str)
    assert reason in found


def test_where_vcenter_lists_no_changes_the_request_counts() -> None:
    """Before vSphere 6.5 there is only the request; its value must be the present one."""
    assert last_change("numCPUs", 16, [event(None, numCPUs=16)], KEPT) == Author(
        "CORP\\ops", AT.isoformat(timespec="seconds")
    )
    assert isinstance(last_change("numCPUs", 12, [event(None, numCPUs=16)], KEPT), str)
