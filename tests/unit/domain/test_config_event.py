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


def test_the_newest_event_that_changed_it_names_the_author() -> None:
    """With the time and the value before; an event of another setting is passed over."""
    events = [
        event("config.hardware.numCoresPerSocket: 4 -> 8; \n\n", "CORP\\early", numCoresPerSocket=8),
        event(CORES, "CORP\\dba", 5, numCoresPerSocket=16),
        event("config.hardware.memoryMB: 1024 -> 2048; \n\n", "CORP\\other", 9, memoryMB=2048),
    ]
    found = last_change("numCoresPerSocket", 16, events, KEPT)
    assert found == Author("CORP\\dba", "2026-11-24T13:10:00+00:00", "8")


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


def test_a_deleted_key_has_an_author() -> None:
    """The list names what was deleted with the value that it had."""
    listed = 'config.extraConfig("numa.vcpu.min"): (key = "numa.vcpu.min", value = "9"); '
    events = [ConfigEvent(AT, "CORP\\ops", {"numa.vcpu.min": None}, "\n", listed)]
    assert last_change("numa.vcpu.min", None, events, KEPT) == Author("CORP\\ops", AT.isoformat(), "9")
    assert isinstance(last_change("numa.vcpu.min", "9", events, KEPT), str)


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


def test_text_in_a_note_does_not_hide_the_author() -> None:
    """Another login writes an entry's text into the note, and sends the present value once more."""
    events = [
        event("config.hardware.numCPU: 8 -> 16; \n\n", "CORP\\alice", numCPUs=16),
        event(
            'config.annotation: "it\'s \\"x\\"" -> "y config.hardware.numCPU: 4 -> 16; "; \n\n',
            *("CORP\\bob", 5),
            numCPUs=16,
        ),
    ]
    assert last_change("numCPUs", 16, events, KEPT) == Author("CORP\\alice", AT.isoformat(), "8")


def test_an_entry_after_a_note_counts() -> None:
    """Notes have semicolons, arrows and quotes of their own."""
    note = 'config.annotation: "a; b -> \\"c\\"" -> "say "hi" then; go"; \n\n'
    found = last_change("numCoresPerSocket", 16, [event(note + CORES, numCoresPerSocket=16)], KEPT)
    assert found == Author("CORP\\ops", AT.isoformat(), "8")


def test_hardware_versions_are_compared_as_numbers() -> None:
    """`vmx-09` is the hardware version 9."""
    events = [event('config.version: "vmx-08" -> "vmx-09"; \n\n', hardwareVersion=9)]
    assert last_change("hardwareVersion", 9, events, KEPT) == Author("CORP\\ops", AT.isoformat(), "vmx-08")
    assert isinstance(last_change("hardwareVersion", 10, events, KEPT), str)


def test_where_vcenter_lists_no_changes_the_request_counts() -> None:
    """Before vSphere 6.5 there is only the request; its value must be the present one."""
    assert last_change("numCPUs", 16, [event(None, numCPUs=16)], KEPT) == Author(
        "CORP\\ops", AT.isoformat(timespec="seconds")
    )
    assert isinstance(last_change("numCPUs", 12, [event(None, numCPUs=16)], KEPT), str)
