"""What a restore decides by the store and the log, also while the vCenter or the guest does not answer."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.store.build import Leased, claim, new_run, new_vm
from tests.support.away import target_away, variables
from tests.support.hosts import vm_of
from tests.support.ports import free_port
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import SqlTarget, Target
from vnuma.engine.audit.log import PROGRAM, audit_lines
from vnuma.engine.cell.boot import PROOF
from vnuma.engine.cell.dataset import DATABASE
from vnuma.engine.instance.sql_identity import CLIENT
from vnuma.engine.lease.baseline import GuestReader, baseline_document
from vnuma.engine.restore import restore
from vnuma.engine.restore.restore import (
    baseline_values,
    differences,
    find_baseline,
    has_guest,
    plan_target,
    restore_target,
)
from vnuma.engine.restore.restore_leftovers import (
    RestoreRequest,
    Unanswered,
    _settle,
    left_after,
    restore_leftovers,
    show_leftovers,
    unknown_mark,
)
from vnuma.engine.restore.restore_vm import Choice, Restored
from vnuma.errors import (
    InputError,
    NotAtBaseline,
    SqlTimeout,
    StoreError,
    VCenterUnreachable,
    VmHeld,
    VnumaError,
    WrongServer,
)
from vnuma.store import cells, facts, leases, runs
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.rows import RestoreOutcome, RunState
from vnuma.store.tables import iso
from vnuma.workloads.shell import Output

ON, OFF = Power.ON, Power.OFF
HELD = "page_cache, sizes: [1], transparent_hugepages: never"
COMMAND = "command, run: bench, figure: {name: tps, unit: 1/s, better: higher, regex: '(x)'}"
TEXT = """
{{name: held, vm: sql16, reference: a, arms: [{{topology: keep, name: a}}],
design: {{blocks: 1, a_a: false, sentinel: false}}, power: {{vcenter_retry_s: 0.001, sql_timeout_s: 0.001}},
workload: {{name: {workload}}}}}
"""
QUERIES = "cross_join, sizes: [500]"
KNOWN = baseline_document(vm_of(), GuestReader("sql16:1433", dict))


@pytest.fixture
def away(store: Store) -> Leased:
    """A VM that a run has taken over and begun to change; its vCenter is away now."""
    with store.write() as connection:
        saved = runs.save_study(connection, "held", TEXT.format(workload=QUERIES))
        run = runs.create_run(connection, saved, seed=1)
    leased = new_vm(store, run, key="v/i", arms=1)
    claim(store, leased)
    with store.write() as connection:
        cells.correct(connection, leased.vm.id, leased.token, KNOWN)
        return replace(leased, vm=leases.get_vm(connection, leased.vm.id))


def context_of(store: Store, leased: Leased, workload: str = QUERIES, **known: Any) -> VmContext:
    """The VM with a study of this workload."""
    study = parse_study(TEXT.format(workload=workload), "study")
    return VmContext(
        store, leased.run, study, leased.vm, known.pop("target", target_away("sql16")), leased.token, **known
    )


def test_a_vm_whose_vcenter_is_away_keeps_its_lease(store: Store, away: Leased) -> None:
    """It may not be at its baseline, and nobody has looked. What would change is not known either."""
    context = context_of(store, away)
    for look in (plan_target, differences):
        with pytest.raises(VCenterUnreachable):
            look(context)

    with pytest.raises(NotAtBaseline):
        restore_target(context)

    with store.read() as connection:
        assert leases.get_vm(connection, away.vm.id).restore_outcome is RestoreOutcome.UNREACHABLE
        assert leases.token_of(connection, away.vm.vm_key, away.run.id) == away.token + 1


@pytest.mark.parametrize(
    ("noted", "choice", "looks"),
    [
        (None, "refuse", False),
        (0, "refuse", True),
        (-1, "refuse", False),
        (0, "theirs", False),
        (0, "baseline", False),
    ],
    ids=["never", "restored", "a cell began since", "theirs", "baseline"],
)
def test_a_vm_is_not_restored_twice_for_its_programs_part(
    store: Store, away: Leased, noted: int | None, choice: Choice, looks: bool
) -> None:
    """It may be in use by now: it is only looked at, unless a run or a person has to do with it since."""
    context = context_of(store, away)
    if noted is not None:
        value = {"settings": 4, "after": restore._last_attempt(context) + noted}
        with store.write() as connection:
            facts.add_vm_facts(connection, away.vm.id, "vm_restored", {"vm": value})

    with pytest.raises(VCenterUnreachable) if looks else nullcontext():
        assert restore._restored_before(context, choice) is None


@pytest.mark.parametrize(("lease", "power"), [(None, ON), ("another run's", None)])
def test_a_vm_that_was_marked_since_its_restore_is_restored_again(
    store: Store, away: Leased, monkeypatch: pytest.MonkeyPatch, lease: str | None, power: Power | None
) -> None:
    """Without a mark nobody has begun with it, and its earlier restore holds."""
    context = context_of(store, away)
    with store.write() as connection:
        noted = {"settings": 4, "after": restore._last_attempt(context)}
        facts.add_vm_facts(connection, away.vm.id, "vm_restored", {"vm": noted})
    monkeypatch.setattr(restore, "facts_now", lambda *_given: replace(vm_of(), lease=lease))

    found = restore._restored_before(context, "refuse")

    assert (found.power if found else None) is power


@pytest.mark.parametrize(
    ("workload", "fact", "shaped", "vm_only", "may_have"),
    [
        (HELD, None, False, False, True),
        (HELD, None, True, False, False),
        (HELD, PROOF, True, False, True),
        (HELD, PROOF, True, True, False),
        (QUERIES, PROOF, True, False, False),
        (f"{COMMAND}, client: driver", PROOF, True, False, False),
        (f"{COMMAND}, client: driver", CLIENT, True, False, True),
    ],
)
def test_a_run_has_left_something_only_in_a_guest_that_it_has_proven(
    store: Store, away: Leased, workload: str, fact: str | None, shaped: bool, vm_only: bool, may_have: bool
) -> None:
    """Or on its client, once it was used; a machine that nothing shapes is its own proof."""
    if fact:
        with store.write() as connection:
            facts.add_vm_facts(connection, away.vm.id, fact, {"x": {"machine": "m"}})
    target = target_away("sql16") if shaped else Target(name="sql16")

    assert has_guest(context_of(store, away, workload, target=target, vm_only=vm_only)) is may_have


class ThisMachine:
    """A shell of a machine that is not the VM."""

    def __call__(self, script: str, within_s: float = 60) -> Output:
        """Run it here."""
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
        return Output(done.returncode, done.stdout, done.stderr)


def test_a_server_that_nothing_proves_is_not_the_vms(store: Store, away: Leased) -> None:
    """No boot of the run proved it, and it does not answer: none of its settings is restored."""
    sql = {"host": "127.0.0.1", "port": free_port(), "user": "u", "password": {"env": "HOME"}}
    target = target_away("sql16").model_copy(update={"sql": SqlTarget.model_validate(sql)})
    source = restore.source_in_store(context_of(store, away, target=target), "refuse")

    assert not source.proves(None, None)  # type: ignore[arg-type]  # nobody asks vCenter


def test_a_run_knows_its_mark_by_when_it_was_created(store: Store, away: Leased) -> None:
    """Each store has its own quick.1, so a name identifies none."""
    source = restore.source_in_store(context_of(store, away), "refuse")

    assert source.created == iso(away.run.created_at)


@pytest.mark.parametrize(
    ("workload", "power", "raised"),
    [(HELD, ON, WrongServer), (QUERIES, ON, SqlTimeout), (QUERIES, OFF, None)],
    ids=["another machine's shell", "SQL Server starts no more", "off"],
)
def test_a_guest_is_ready_and_the_vms_before_anything_is_removed(
    store: Store, away: Leased, workload: str, power: Power, raised: type[VnumaError] | None
) -> None:
    """A VM that was off before stays off: nothing is waited for."""
    with store.write() as connection:
        facts.add_vm_facts(connection, away.vm.id, PROOF, {"x": "0000"})
    sql = {"host": "127.0.0.1", "port": free_port(), "user": "u", "password": {"env": "HOME"}}
    target = target_away("sql16").model_copy(update={"sql": SqlTarget.model_validate(sql)})
    context = context_of(store, away, workload, target=target, task_shell=ThisMachine())

    with pytest.raises(raised) if raised else nullcontext():
        assert restore._reached_boot(context, Restored("sql16", power=power)) == ""


@pytest.mark.parametrize(
    ("name", "run", "found"),
    [("sql16", None, "quick.2"), ("sql16", "quick.1", "quick.1"), ("sql17", None, None), ("new", None, None)],
)
def test_the_newest_run_with_a_baseline_of_a_vm_is_asked(
    store: Store, name: str, run: str | None, found: str | None
) -> None:
    """Or the one that is named. One that has not come to the VM yet knows nothing of it."""
    for number in (1, 2, 3):
        owner = new_run(store)
        with store.write() as connection:
            leases.add_vm(connection, owner.id, vm_key="v/n", name="new", path="p", esxi_host="e")
            if number == 3:
                leases.add_vm(connection, owner.id, vm_key="v/i", name="sql16", path="p", esxi_host="e")
        if number < 3:
            leased = new_vm(store, owner, key="v/i")
            with store.write() as connection:
                cells.set_restored(connection, leased.vm.id, leased.token, RestoreOutcome.RESTORED)
                leases.release_lease(connection, "v/i", leased.token)

    with pytest.raises(InputError) if found is None else nullcontext():
        assert find_baseline(store, name, run)[0].name == found


def test_a_shaped_vms_baseline_is_power_and_settings(away: Leased) -> None:
    """As they are restored."""
    assert baseline_values(away.vm) == (str(ON), vm_of().settings)


@pytest.mark.parametrize(
    ("made", "done", "kept"),
    [
        (True, Restored("sql16"), True),
        (True, Restored("sql16", lab_ended=True), False),
        (False, Restored("sql16"), False),
    ],
    ids=["made", "ended with its lab", "never made"],
)
def test_the_database_of_a_run_that_may_continue_is_kept(
    store: Store, away: Leased, made: bool, done: Restored, kept: bool
) -> None:
    """That is said. The run counts as stopped once its last VM is restored."""
    with store.write() as connection:
        if made:
            facts.add_vm_facts(connection, away.vm.id, "dataset", {"database": "d"})
        cells.set_restored(connection, away.vm.id, away.token, RestoreOutcome.RESTORED)

    assert bool(_settle(RestoreRequest(), context_of(store, away), done)) is kept
    with store.read() as connection:
        assert runs.get_run(connection, away.run.name).state is RunState.STOPPED


def test_what_programs_made_is_left_only_with_a_line_in_the_log(store: Store, away: Leased) -> None:
    """`--vm-only` is a person's decision; a machine that nothing shapes has nothing else to restore."""
    with store.write() as connection:
        facts.add_vm_facts(connection, away.vm.id, PROOF, {"x": "0000"})
    wanted = RestoreRequest(vm_only=True)

    assert _settle(wanted, context_of(store, away, HELD), Restored("sql16"))
    assert not _settle(wanted, context_of(store, away), Restored("sql16"))
    assert len(audit_lines(store, away.run.name)) == 1
    new_vm(store, away.run, key="linux/box", name="box")
    with pytest.raises(InputError):
        show_leftovers(store, replace(wanted, names=["box"]))


@pytest.mark.parametrize(
    ("site", "problems"), [(None, [VCenterUnreachable]), ("site-b", [])], ids=["here", "of another site"]
)
def test_a_mark_that_cannot_be_read_is_a_problem(
    store: Store, tmp_path: Path, site: str | None, problems: list[type[VnumaError]]
) -> None:
    """The VM may belong to a run that this store does not know."""
    inventory = tmp_path / "hosts.json"
    host = variables() | ({"vnuma_site": site} if site else {})
    inventory.write_text(json.dumps({"all": {"hosts": {"sql16": host}}}), encoding="utf-8")

    report = restore_leftovers(store, RestoreRequest(inventory=Inventory(inventory)))

    assert [type(problem) for problem in report.problems] == problems


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (None, False),
        ('{"run": "a.1", "created": "2026"}', False),
        ('{"run": "a.1", "created": "2025"}', True),
        ('{"run": "a.1"}', True),
        ("x", True),
    ],
)
def test_a_mark_is_known_by_its_runs_name_and_time(text: str | None, unknown: bool) -> None:
    """Each store has its own quick.1."""
    assert [type(one) for one in unknown_mark("sql16", text, {("a.1", "2026")})] == [VmHeld] * unknown


CORES, SOFT_NUMA = Edit("numCoresPerSocket", 4, 16), Edit("sql.softNuma", True, False)
MADE, SETUP = Edit(DATABASE, None, "d"), "study_setup: make tables"


@pytest.mark.parametrize(
    ("edits", "programs", "unwritten", "raised", "stays"),
    [
        ((CORES,), (), 0, None, False),
        ((CORES, MADE), (), 0, None, True),
        ((CORES,), ("iteration: bench",), 0, None, False),
        ((CORES,), (SETUP, SETUP), 0, NotAtBaseline, False),
        ((CORES, SOFT_NUMA), (), 0, NotAtBaseline, False),
        ((CORES,), (), 1, StoreError, False),
        ((CORES, SOFT_NUMA), (SETUP,), 1, StoreError, False),
    ],
    ids=["all", "its database", "programs", "set up", "in the guest", "the log", "the log first"],
)
def test_a_vm_is_restored_from_the_log_but_for_what_only_a_person_can_undo(
    edits: tuple[Edit, ...],
    programs: tuple[str, ...],
    unwritten: int,
    raised: type[VnumaError] | None,
    stays: bool,
) -> None:
    """The database is meant to stay; what else stays decides the exit code."""
    at = datetime(2026, 11, 25, tzinfo=UTC)
    lines = [AuditLine(at, "o", "a", "v/i", "b.1", None, PROGRAM, [], words, "made") for words in programs]
    one = Unanswered("a", "v/i", "b.1", lines, edits)

    with pytest.raises(raised) if raised else nullcontext():
        assert (left_after(one, "done", [StoreError("full")] * unwritten) != "done") is stays
