"""What an audit log leaves to undo, and what a restore knows from it alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.store.build import new_run
from tests.support.hosts import vm_of
from tests.support.studies import study
from vnuma.domain.study.study import PowerRules
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.log import Journal
from vnuma.engine.cell.dataset import DATABASE
from vnuma.engine.lease.baseline import DEADLINES, deadlines
from vnuma.engine.restore.restore import naming_all, restore_each
from vnuma.engine.restore.restore_leftovers import (
    RestoreRequest,
    Unanswered,
    restore_leftovers,
    source_in_log,
    unanswered,
)
from vnuma.errors import EnvironmentProblem, InputError, NotAtBaseline, RestoreConflict, VnumaError
from vnuma.store import tables
from vnuma.store.open import Store

CORES = Edit("numCoresPerSocket", 4, 16)
OFF = Edit("power", str(Power.ON), str(Power.OFF))
SOFT_NUMA = Edit("sql.softNuma", True, False)
Wrote = Callable[[Journal], None]


def changing(*edits: Edit) -> Wrote:
    """A run that changed these."""

    def write(journal: Journal) -> None:
        for edit in edits:
            with journal.change("reconfigure", [edit]):
                pass

    return write


def refused(journal: Journal) -> None:
    """A change that was not made."""
    with pytest.raises(RestoreConflict), journal.change("reconfigure", [CORES]):
        raise RestoreConflict("refused")


def restored(journal: Journal) -> None:
    """What a restore from the log notes at its end."""
    journal.note("restored", "sql16: 1 settings restored")


def left_by(store: Store, *wrote: Wrote, run: str | None = "gone.1") -> tuple[Unanswered, ...]:
    """What is unanswered after a run that this store does not know, or a role's work by hand."""
    journal = Journal(store, "v/i", "sql16", run_name=run)
    for write in wrote:
        write(journal)
    return unanswered(store)


@pytest.mark.parametrize(
    ("wrote", "edits"),
    [
        ([], []),
        ([changing(CORES)], [CORES]),
        ([changing(CORES, OFF)], [CORES, OFF]),
        ([changing(CORES, Edit("numCoresPerSocket", 16, 8))], [Edit("numCoresPerSocket", 4, 8)]),
        ([changing(CORES, Edit("numCoresPerSocket", 16, 4))], []),
        ([refused], []),
        ([changing(Edit(DATABASE, None, "vnuma"))], []),
        ([changing(CORES), restored], []),
        ([changing(CORES), restored, changing(OFF)], [OFF]),
    ],
    ids=["nothing", "one", "two", "net", "undone", "failed", "only its database", "restored", "since then"],
)
def test_what_is_left_to_undo_is_the_net_effect(store: Store, wrote: list[Wrote], edits: list[Edit]) -> None:
    """Of what was made, or may have been, since the VM was last restored from the log."""
    found = left_by(store, *wrote)

    assert [edit for one in found for edit in one.edits] == edits


def test_work_by_hand_leaves_nothing_to_undo(store: Store) -> None:
    """A role's change outside a run is meant to stay."""
    assert left_by(store, changing(CORES), run=None) == ()


@pytest.mark.parametrize(("days", "left"), [(-1, 0), (1, 1)])
def test_a_run_of_the_store_answers_for_its_own_lines_only(store: Store, days: int, left: int) -> None:
    """Each store has its own quick.1: one that began after a line was written is another one."""
    run = new_run(store)
    with store.write() as connection:
        connection.execute(tables.run.update().values(created_at=run.created_at + timedelta(days=days)))

    assert len(left_by(store, changing(CORES), run=run.name)) == left


def test_without_a_log_nothing_is_left_and_a_damaged_one_is_named(store: Store) -> None:
    """An empty list would say that every VM is at its baseline."""
    assert unanswered(store) == ()

    audit_file(store.place).write_text("damaged\n", encoding="utf-8")
    with pytest.raises(InputError):
        unanswered(store)


def test_the_source_has_the_settings_before_the_deadlines_and_the_power(store: Store) -> None:
    """Present settings complete it, since the log has only what was changed."""
    long = study(power={"vcenter_retry_s": 1}, workload={"name": "cross_join", "timeout_s": 9000})
    noted: Wrote = lambda journal: journal.note(DEADLINES, deadlines(long))  # noqa: E731
    (one,) = left_by(store, noted, changing(CORES, OFF, SOFT_NUMA))

    source = source_in_log(one, "refuse")

    now = vm_of(numCoresPerSocket=16)
    assert source.before(now.settings)["numCoresPerSocket"] == 4
    assert source.before(now.settings)["memoryMB"] == now.settings["memoryMB"]
    assert (source.power, source.rules, source.execution_s) == (Power.ON, long.power, 9000)
    assert source.written == {"numCoresPerSocket": {16}}
    assert [edit.setting for edit in source.change(now)] == ["numCoresPerSocket"]
    assert [edit.setting for edit in one.inside] == ["sql.softNuma"]
    assert [line.action for line in source.power_lines()] == ["reconfigure"]


def test_deadlines_that_an_earlier_version_noted_are_read(store: Store) -> None:
    """Those without the workload's: its programs may run as long as a step usually does."""
    rules = PowerRules(vcenter_retry_s=1)
    noted: Wrote = lambda journal: journal.note(DEADLINES, rules.model_dump_json())  # noqa: E731
    (one,) = left_by(store, noted, changing(CORES))

    source = source_in_log(one, "refuse")

    assert (source.rules, source.execution_s) == (rules, 0)


@pytest.mark.parametrize(
    ("text", "foreign"), [(None, False), ('{"run": "gone.1"}', False), ('{"run": "b.1"}', True), ("x", True)]
)
def test_only_the_lost_runs_own_mark_is_removed(store: Store, text: str | None, foreign: bool) -> None:
    """Another run may have the VM by now."""
    (one,) = left_by(store, changing(CORES))

    source = source_in_log(one, "refuse")

    assert (source.foreign_mark(text) is not None) is foreign
    assert (source.power, source.rules) == (None, PowerRules())  # neither was noted


@pytest.mark.parametrize(
    ("wanted", "problems"),
    [
        (RestoreRequest(), 1),
        (RestoreRequest(["sql16"]), 1),
        (RestoreRequest(run="quick.1"), 0),
    ],
    ids=["everything", "its VM", "another run"],
)
def test_a_restore_by_the_store_names_what_only_the_log_knows(
    store: Store, wanted: RestoreRequest, problems: int
) -> None:
    """With exit code 7: such a VM is never called at its baseline."""
    new_run(store)
    (one,) = left_by(store, changing(CORES))

    report = restore_leftovers(store, wanted)

    assert [problem.exit_code for problem in report.problems] == [NotAtBaseline.exit_code] * problems
    assert one.edits == (CORES,)


@pytest.mark.parametrize("wanted", [RestoreRequest(["sql99"]), RestoreRequest(["sql99"], log=Path("own"))])
def test_a_vm_that_nobody_knows_is_refused(store: Store, wanted: RestoreRequest) -> None:
    """Before anything is restored."""
    left_by(store, changing(CORES))
    log = audit_file(store.place) if wanted.log else None

    with pytest.raises(InputError):
        restore_leftovers(store, RestoreRequest(wanted.names, log=log))


def test_one_restore_that_fails_keeps_no_other_from_being_done() -> None:
    """Results and errors are in the order of the VMs."""

    def fails(error: VnumaError) -> str:
        raise error

    away, other = NotAtBaseline("a"), EnvironmentProblem("b")
    done, problems = restore_each(
        [lambda: "first", lambda: fails(other), lambda: fails(away), lambda: "last"]
    )

    assert (done, problems) == (["first", "last"], [other, away])
    assert naming_all(problems) is away
    assert naming_all([other]) is other
