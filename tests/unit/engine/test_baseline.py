"""Which baseline a run takes over, given what is stored, and what the VM and its SQL Server show."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import vm_of
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.audit.log import Journal
from vnuma.engine.lease.baseline import (
    GuestReader,
    baseline_document,
    baseline_power,
    baseline_settings,
    conflict_words,
    conflicts,
    plan_baseline,
    record_baseline,
    refuse_altered,
    written,
)
from vnuma.engine.lease.whose_vm import mark_text, marking, parse_mark, refuse_other, require_own_host
from vnuma.errors import (
    HostChanged,
    InputError,
    NotAtBaseline,
    PreflightBlocked,
    StoreError,
    VmHeld,
    VnumaError,
)
from vnuma.store import leases
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.tables import utc_now

HERE = "sql16:1433"


@pytest.fixture
def vm(store: Store, run: Run) -> Vm:
    """Its VM, without a baseline."""
    facts = vm_of()
    with store.write() as connection:
        return leases.add_vm(
            connection, run.id, vm_key=facts.key, name="sql16", path=facts.path, esxi_host="esx01"
        )


def answering(values: dict[str, object], where: str = HERE) -> GuestReader:
    """A SQL Server that has these settings."""
    return GuestReader(where, lambda: values)


def silent(where: str = HERE) -> GuestReader:
    """One that does not answer."""

    def read() -> dict[str, object]:
        raise PreflightBlocked("It does not answer.")

    return GuestReader(where, read)


BEFORE: dict[str, object] = {"sql.softNuma": 1}
NOW: dict[str, object] = {"sql.softNuma": 0}
KNOWN: dict[str, Any] = baseline_document(vm_of(), answering(BEFORE))


def test_the_first_baseline_is_what_vm_and_server_show(store: Store, run: Run, vm: Vm) -> None:
    """Without our own mark, which is not to be restored."""
    marked = vm_of(**{"vnuma.run": "x"})

    assert plan_baseline(store, run, vm, marked, answering(BEFORE)) == KNOWN


@pytest.mark.parametrize(
    ("stored", "guest", "planned"),
    [
        (KNOWN, answering(NOW), KNOWN | {"guest": NOW}),
        (KNOWN, silent(), KNOWN),
        (KNOWN, silent("other:1433"), None),
        (KNOWN | {"guest": {}}, silent("other:1433"), KNOWN | {"guest": {}}),
    ],
    ids=["read again", "does not answer", "another server does not answer", "none of SQL Server's"],
)
def test_until_the_first_write_in_the_guest_its_part_is_read_again(
    store: Store, run: Run, vm: Vm, stored: dict[str, Any], guest: GuestReader, planned: dict[str, Any] | None
) -> None:
    """Nothing has proven whose server it was; the rest of a stored baseline is never replaced."""
    known, facts = replace(vm, baseline=stored), vm_of(numCPUs=8)

    with pytest.raises(PreflightBlocked) if planned is None else nullcontext():
        assert plan_baseline(store, run, known, facts, guest) == planned


def test_after_the_first_write_in_the_guest_its_part_stays(store: Store, run: Run, vm: Vm) -> None:
    """The value that is read now may be the run's own."""
    journal = Journal(store, vm.vm_key, vm.name, run)
    with journal.change("soft-NUMA", [Edit("sql.softNuma", 1, 0)]):
        pass

    assert plan_baseline(store, run, replace(vm, baseline=KNOWN), vm_of(), answering(NOW)) == KNOWN


@pytest.mark.parametrize(
    ("facts", "restored", "error"),
    [
        (replace(vm_of(), instance_uuid="another"), False, InputError),
        (replace(vm_of(), lease='{"run": "other.3"}'), False, VmHeld),
        (replace(vm_of(), lease="not JSON"), False, VmHeld),
        (vm_of(numCPUs=8), True, PreflightBlocked),
        (vm_of(), True, None),
    ],
    ids=["another VM", "another run's mark", "an unknown mark", "changed after its restore", "as restored"],
)
def test_a_vm_that_is_not_the_runs_to_change_is_refused(
    store: Store, run: Run, vm: Vm, facts: VmFacts, restored: bool, error: type[VnumaError] | None
) -> None:
    """Before anything is stored or changed; not for the run's own mark."""
    known = replace(vm, baseline=KNOWN, restored_at=utc_now()) if restored else vm
    marked = replace(facts, lease=facts.lease or mark_text(run, 1))

    with pytest.raises(error) if error else nullcontext():
        assert plan_baseline(store, run, known, marked, answering(BEFORE)) == KNOWN
    assert marking(run, replace(facts, lease=mark_text(run, 1))) == Edit("vnuma.run", run.name, run.name)


@pytest.mark.parametrize(
    ("recorded", "stored", "refused"),
    [
        ([], KNOWN, False),
        ([KNOWN], KNOWN, False),
        ([KNOWN, NOW], KNOWN, False),
        ([NOW], KNOWN, True),
        ([NOW], None, False),
    ],
    ids=["another machine's", "ours", "an earlier one of ours", "altered", "none yet"],
)
def test_only_a_baseline_that_this_machine_recorded_is_restored(
    store: Store, run: Run, vm: Vm, recorded: list[object], stored: object, refused: bool
) -> None:
    """If it recorded any: whoever can write the store can add a corrected one."""
    for one in recorded:
        record_baseline(Journal(store, vm.vm_key, vm.name, run), one)
    now = replace(vm, baseline=stored)

    with pytest.raises(NotAtBaseline) if refused else nullcontext():
        refuse_altered(store, run, now)


def test_a_stored_baseline_has_tuples_again(vm: Vm) -> None:
    """JSON has none; without a baseline nothing is guessed."""
    stored = {"settings": {"cpuAffinity": [0, 1], "numCPUs": 4}, "power": "poweredOff"}
    known = replace(vm, baseline=stored)

    assert baseline_settings(known) == {"cpuAffinity": (0, 1), "numCPUs": 4}
    assert baseline_power(known) == "poweredOff"
    with pytest.raises(StoreError):
        baseline_settings(vm)


@pytest.mark.parametrize(
    ("text", "run"),
    [(None, None), ("", None), ("x", "an unknown run"), ("[1]", "an unknown run"), ('{"run": "a.1"}', "a.1")],
)
def test_any_text_in_the_marks_place_is_somebodys(text: str | None, run: str | None) -> None:
    """Nobody else's VM is taken because its mark cannot be read."""
    mark = parse_mark(text)

    assert (mark and mark["run"]) == run


def test_a_vm_is_named_where_it_is_another_one(vm: Vm) -> None:
    """By its path, or as another one with the same path; and where it moved."""
    other = replace(vm_of(), instance_uuid="another")
    for facts in (other, replace(other, path="/DC0/vm/elsewhere")):
        with pytest.raises(InputError):
            refuse_other(vm, facts)
    refuse_other(vm, vm_of())

    with pytest.raises(HostChanged):
        require_own_host(vm, "esx02")
    require_own_host(vm, "esx01")


BASELINE: dict[str, Any] = {"numCoresPerSocket": 4, "memoryMB": 65536, "cpuAffinity": ()}


LOCKED: dict[str, Any] = {"memoryReservation": 65536, "memoryReservationLockedToMax": True}
UNLOCKED: dict[str, Any] = {"memoryReservation": 0, "memoryReservationLockedToMax": False}


@pytest.mark.parametrize(
    ("baseline", "ours", "now"),
    [
        (BASELINE, {}, BASELINE),
        (BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"numCoresPerSocket": 8}),
        ({}, {}, {"numa.autosize.cookie": "160082"}),  # ESXi writes it at power-on
        (UNLOCKED, {"memoryReservationLockedToMax": {False, True}}, LOCKED),  # vSphere moves the reservation
    ],
)
def test_what_we_or_vsphere_wrote_is_no_conflict(
    baseline: dict[str, Any], ours: dict[str, Any], now: dict[str, Any]
) -> None:
    """A VM in the shape of some arm is as we left it."""
    assert not conflicts(baseline, ours, now)


def test_ours_is_what_an_attempt_wrote_not_what_it_found() -> None:
    """What it found may be somebody else's; lists of JSON are compared as settings are."""
    edits = [{"setting": "numCoresPerSocket", "before": 4, "after": 8}]
    assert written([edits, [{"setting": "cpuAffinity", "before": [], "after": [0, 1]}]]) == {
        "numCoresPerSocket": {8},
        "cpuAffinity": {(0, 1)},
    }


def test_a_value_that_is_neither_ours_nor_the_baselines_is_a_foreign_change() -> None:
    """Named with all three values; also where the run has set it, to another one."""
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"memoryMB": 98304})

    assert (found.setting, found.baseline, found.now) == ("memoryMB", 65536, 98304)
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {8}}, BASELINE | {"numCoresPerSocket": 2})
    assert (found.setting, found.baseline, found.ours, found.now) == ("numCoresPerSocket", 4, 8, 2)


def test_the_words_are_a_table_of_three_values() -> None:
    """Setting, baseline, ours, now; absent values are called none."""
    text = conflict_words("sql-c", conflicts(BASELINE, {}, BASELINE | {"cpuAffinity": (0, 1)}))

    assert text.splitlines()[-1].split() == ["cpuAffinity", "none", "none", "0,1"]
