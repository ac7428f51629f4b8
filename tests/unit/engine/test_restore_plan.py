"""What a restore of a VM decides, given what it sees, without a server that answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.store.build import new_run
from tests.support.away import session_at
from tests.support.hosts import vm_of
from vnuma.domain.study.study import PowerRules
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power, Settings
from vnuma.engine.access.target import SqlTarget, Target
from vnuma.engine.audit.log import Journal, audit_lines
from vnuma.engine.cell.shape import PowerSwitch
from vnuma.engine.instance.sql_settings import SOFT_NUMA
from vnuma.engine.restore.restore_vm import (
    Choice,
    Restored,
    Source,
    _VmWork,
    about_power,
    is_asked_off,
    is_pending,
    wanted_power,
    was_powered_off,
)
from vnuma.errors import RestoreConflict, SqlTimeout, VCenterUnreachable, VmHeld, VnumaError
from vnuma.store.audit import AuditLine, Outcome
from vnuma.store.open import Store
from vnuma.vsphere.apply import no_fence
from vnuma.vsphere.connect import VmRef

ON, OFF = Power.ON, Power.OFF
MINE = '{"run": "quick.1"}'
HERE = Target(name="linux16")


def source_of(**changes: Any) -> Source:
    """A run that has set 16 cores per socket where there were 4, in a VM that was on."""
    known: dict[str, Any] = {
        "vm_key": "v/i",
        "name": "linux16",
        "run": "quick.1",
        "created": None,
        "rules": PowerRules(),
        "choice": "refuse",
        "power": ON,
        "known": vm_of().settings,
        "written": {"numCoresPerSocket": {16}},
        "power_lines": lambda: (),
        "choose": "vnuma restore linux16 --theirs",
    }
    return Source(**known | changes)


def edits_of_plan(planned: Restored) -> list[tuple[str, Any, Any]]:
    return [(edit.setting, edit.before, edit.after) for edit in planned.changes]


CORES_BACK = ("numCoresPerSocket", 16, 4)
UNMARKED = ("vnuma.run", "quick.1", None)


@pytest.mark.parametrize(
    ("now", "known", "edits", "powered_off"),
    [
        ({}, {}, [CORES_BACK], True),  # a VM without SQL Server: no login is looked for
        ({"power": OFF}, {}, [CORES_BACK, ("power", str(OFF), str(ON))], False),
        ({}, {"power": OFF}, [CORES_BACK, ("power", str(ON), str(OFF))], True),
        ({"power": OFF}, {"power": None}, [CORES_BACK], False),
        ({"lease": MINE}, {}, [CORES_BACK, UNMARKED], True),
        ({"lease": MINE}, {"is_known": False}, [UNMARKED], False),
        ({"lease": "b"}, {"untouched": True}, [], False),
        ({"settings": vm_of().settings}, {}, [], False),
        ({"settings": vm_of().settings}, {"power": OFF}, [("power", str(ON), str(OFF))], True),
    ],
)
def test_a_restore_plans_settings_power_and_mark(
    now: dict[str, Any], known: dict[str, Any], edits: list[tuple[str, Any, Any]], powered_off: bool
) -> None:
    """Whatever differs from before the run goes back; the mark goes if it is the run's."""
    facts = replace(vm_of(numCoresPerSocket=16), **now)

    planned = source_of(**known).plan(facts, HERE)

    assert (edits_of_plan(planned), planned.powered_off) == (edits, powered_off)


@pytest.mark.parametrize("held", [RestoreConflict, VmHeld])
def test_a_vm_that_another_run_has_marked_is_left_alone(held: type[RestoreConflict | VmHeld]) -> None:
    """Unless this run has changed nothing there: then nothing needs restoring."""
    facts = replace(vm_of(numCoresPerSocket=16), lease="b")

    with pytest.raises(held):
        source_of(held=held).held_by_another_run(facts)

    assert source_of(untouched=True).held_by_another_run(facts)
    assert not source_of().held_by_another_run(replace(facts, lease=MINE))


@pytest.mark.parametrize(("choice", "cores"), [("theirs", 2), ("baseline", 4)])
def test_a_foreign_setting_is_kept_or_restored_as_a_person_chose(choice: Choice, cores: int) -> None:
    """Without a choice it is a conflict, in the plan and in the restore."""
    facts = vm_of(numCoresPerSocket=2)
    for decide in (source_of().settings, source_of().change):
        with pytest.raises(RestoreConflict):
            decide(facts)

    assert source_of(choice=choice).settings(facts)["numCoresPerSocket"] == cores
    assert [edit.after for edit in source_of(choice=choice).change(facts)] == [4] * (choice == "baseline")


@pytest.mark.parametrize(
    ("written", "before", "edits"),
    [
        ({"0"}, {}, [("sched.cpu.affinity", "0", None)]),
        ({"0"}, {"sched.cpu.affinity": "all"}, [("sched.cpu.affinity", "0", "all")]),
        ({"1"}, {}, []),
        ({"0", None}, {"sched.cpu.affinity": "0"}, []),
    ],
)
def test_a_key_that_a_typed_field_owns_is_reset_only_from_our_value(
    written: set[Any], before: Settings, edits: list[tuple[str, Any, Any]]
) -> None:
    """vSphere keeps it beside the field: what anybody else wrote there is not ours to remove."""
    facts = vm_of(**{"sched.cpu.affinity": "0"})
    source = source_of(written={"sched.cpu.affinity": written}, known={**vm_of().settings, **before})

    change = source.change(facts, {**facts.settings})

    assert [(edit.setting, edit.before, edit.after) for edit in change] == edits


def test_a_difference_says_whose_it_is() -> None:
    """A value that the run wrote is ours; any other is somebody else's; power is nobody's for sure."""
    facts = replace(vm_of(numCoresPerSocket=16, memoryMB=1024), power=OFF)

    found = [(item.setting, item.by) for item in source_of().differences(facts)]

    assert sorted(found) == [
        ("memoryMB", "somebody else"),
        ("numCoresPerSocket", "us"),
        ("power", "somebody else or us"),
    ]
    assert source_of().differences(vm_of()) == []


def power_line(after: Power, outcome: Outcome = "made") -> AuditLine:
    """A change of the VM's power in the log."""
    change = [{"setting": "power", "before": None, "after": str(after)}]
    at = datetime(2026, 11, 25, tzinfo=UTC)
    return AuditLine(at, "ops", "linux16", "v/i", "quick.1", None, "power", change, None, outcome)


def power_edit(before: Power, after: Power) -> Edit:
    return Edit("power", str(before), str(after))


@pytest.mark.parametrize(
    ("before", "made", "now", "wanted"),
    [
        (ON, (), OFF, ON),
        (OFF, (power_edit(ON, OFF),), ON, OFF),
        (None, (), OFF, OFF),
        (None, (power_edit(ON, OFF),), OFF, ON),  # this restore has shut it down
        (None, (power_edit(ON, OFF), power_edit(OFF, ON)), ON, ON),
        (None, (Edit("numCPUs", 1, 2),), ON, ON),
    ],
)
def test_the_power_state_to_restore(
    before: Power | None, made: Sequence[Edit], now: Power, wanted: Power
) -> None:
    """As before the run; if the run did not change it, as before this restore."""
    assert wanted_power(before, made, now) is wanted


@pytest.mark.parametrize(
    ("lines", "made", "ours"),
    [
        ([power_line(OFF)], (), True),
        ([power_line(OFF), power_line(ON)], (), False),
        ([power_line(OFF), power_line(ON)], (power_edit(ON, OFF),), True),
        ([power_line(OFF)], (power_edit(OFF, ON),), False),
        ([power_line(OFF, "intended")], (), True),  # the process ended in between
        ([power_line(OFF, "failed")], (), True),  # a guest that was asked may go off late
        ([power_line(OFF, "failed")], (power_edit(OFF, ON),), False),
        ([power_line(OFF), power_line(ON, "failed")], (), True),
        ([], (), False),
    ],
)
def test_only_a_vm_that_we_powered_off_is_powered_on_after_a_failure(
    lines: list[AuditLine], made: Sequence[Edit], ours: bool
) -> None:
    """Whoever else shut it down wants it off."""
    assert was_powered_off(lines, made) is ours


def test_what_a_log_says_of_power() -> None:
    """The last line about it decides, whatever was changed besides."""
    cores = replace(power_line(ON), change=[{"setting": "numCPUs", "before": 1, "after": 2}])
    lines = about_power([power_line(OFF), cores])

    assert lines == [power_line(OFF)]
    assert is_asked_off(lines)
    assert not is_asked_off([])
    assert not is_asked_off([power_line(OFF), power_line(ON)])


@pytest.mark.parametrize(("up_s", "pending"), [(60.0, True), (30.0, True), (29.0, False), (0.0, False)])
def test_a_reboot_ends_a_shutdown_that_is_late(up_s: float, pending: bool) -> None:
    """A VM that was asked half a minute ago goes off yet, unless it was powered on since."""
    request = power_line(OFF, "failed")

    assert is_pending(request, request.at + timedelta(seconds=30), up_s) is pending


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (Restored("a", begun=False), "a: no change was started there"),
        (Restored("a", lab_ended=True), "a: it ended with its lab; nothing is left to restore"),
        (Restored("a", power=ON), "a: the study changes no setting here, powered on"),
        (Restored("a", 2, 2, OFF), "a: 2 of 2 settings read back equal, powered off"),
        (Restored("a", 1, 1), "a: 1 of 1 settings read back equal, files removed"),
    ],
)
def test_a_result_says_only_what_was_proven(result: Restored, words: str) -> None:
    """For people, in a sentence."""
    assert result.words == words


SOFT_NUMA_BACK = {SOFT_NUMA: True}
NO_SERVER = SqlTarget.model_validate(
    {"host": "127.0.0.1", "port": 9, "user": "u", "password": {"env": "HOME"}}
)


def work_of(store: Store, **known: Any) -> _VmWork:
    """The restore of a VM whose vCenter and SQL Server go away before its first request."""
    source, here = source_of(**known), HERE.model_copy(update={"sql": NO_SERVER})
    journal = Journal(store, source.vm_key, source.name, new_run(store))
    ref = VmRef("vm-1", session_at("v").transport)
    return _VmWork(source, here, PowerSwitch(session_at("v"), ref, source.rules, no_fence, journal))


def begun(store: Store) -> list[str]:
    """The changes that were begun, by the audit log."""
    return [line.action for line in audit_lines(store, None)]


@pytest.mark.parametrize(
    ("cores", "now", "known", "raised", "first"),
    [
        (4, OFF, {"power": OFF}, VCenterUnreachable, []),
        (4, OFF, {}, VCenterUnreachable, ["power"]),
        (4, ON, {"power": OFF}, VCenterUnreachable, []),
        (4, OFF, {"power": None}, VCenterUnreachable, []),
        (16, OFF, {}, VCenterUnreachable, ["restore"]),
        (16, ON, {}, VCenterUnreachable, []),
        (16, ON, {"power_lines": lambda: [power_line(OFF)]}, VCenterUnreachable, []),
        (16, OFF, {"inside": SOFT_NUMA_BACK}, VCenterUnreachable, ["restore"]),
        (4, OFF, {"inside": SOFT_NUMA_BACK}, VCenterUnreachable, ["power"]),
        (2, OFF, {}, RestoreConflict, []),
        (2, ON, {"power_lines": lambda: [power_line(OFF)]}, RestoreConflict, []),
        (2, OFF, {"choice": "baseline"}, VCenterUnreachable, ["restore"]),
        (2, OFF, {"choice": "theirs"}, VCenterUnreachable, ["power"]),
    ],
)
def test_the_first_change_of_a_restore_follows_from_what_it_sees(
    store: Store, cores: int, now: Power, known: dict[str, Any], raised: type[VnumaError], first: list[str]
) -> None:
    """Settings before power, nothing where somebody else changed one; a running VM is looked at first."""
    facts = replace(vm_of(numCoresPerSocket=cores), power=now)

    with pytest.raises(raised):
        work_of(store, **known)._restore_all(facts)

    assert begun(store) == first


@pytest.mark.parametrize(
    ("now", "lines", "waits"),
    [
        (ON, [], False),
        (ON, [power_line(ON)], False),
        (OFF, [power_line(OFF)], False),
        (ON, [power_line(OFF)], True),
    ],
)
def test_only_a_shutdown_that_the_run_asked_for_is_waited_for(
    store: Store, now: Power, lines: list[AuditLine], waits: bool
) -> None:
    """Whether it still comes, vCenter is asked; else nothing is."""
    facts = replace(vm_of(), power=now)

    with pytest.raises(VCenterUnreachable) if waits else nullcontext():
        assert work_of(store, power_lines=lambda: lines)._after_shutdown(facts) is facts


@pytest.mark.parametrize(
    ("now", "ours", "raised", "first"),
    [
        (ON, True, SqlTimeout, []),
        (ON, False, VCenterUnreachable, []),
        (OFF, True, VCenterUnreachable, ["power"]),
    ],
    ids=["ours", "another's", "the VM is off"],
)
def test_a_sql_server_that_cannot_be_set_now_is_set_later(
    store: Store, now: Power, ours: bool, raised: type[VnumaError], first: list[str]
) -> None:
    """If it is proven, as soon as it answers; else after a power-on of its own."""
    rules, facts = PowerRules(sql_timeout_s=0.001), replace(vm_of(), power=now)
    work = work_of(store, rules=rules, inside=SOFT_NUMA_BACK, proves=lambda _session, _ref: ours)

    work._set_during_this_boot(facts)
    assert work.restart == {}
    with pytest.raises(raised):
        work._set_what_was_left(facts)

    assert begun(store) == first


@pytest.mark.parametrize(
    ("lines", "now_wanted"), [([], False), ([power_line(ON)], False), ([power_line(OFF)], True)]
)
def test_a_failure_powers_on_only_what_the_run_powered_off(
    store: Store, lines: list[AuditLine], now_wanted: bool
) -> None:
    """vCenter is asked for the VM's state only then."""
    work = work_of(store, power_lines=lambda: lines)

    with pytest.raises(VCenterUnreachable) if now_wanted else nullcontext():
        assert not work._left_off()
