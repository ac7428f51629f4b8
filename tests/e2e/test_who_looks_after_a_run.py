"""Which process supervises a run: one at a time, and never one that only has its number."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import command, vnuma
from tests.support.looking import settings_now, until
from tests.support.site import write_inventory, write_study
from tests.support.supervised import Struck
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.audit.log import journal_of
from vnuma.engine.lease.supervision import (
    SILENT_AFTER,
    claim_supervision,
    require_supervision,
)
from vnuma.engine.restore import restore
from vnuma.engine.restore.restore import source_in_store
from vnuma.engine.restore.restore_leftovers import RestoreRequest, restore_leftovers
from vnuma.engine.restore.restore_vm import Restored, Source, restore_vm
from vnuma.engine.run import start
from vnuma.engine.run.progress import progress_of
from vnuma.errors import LeaseLost, NotAtBaseline, VmHeld
from vnuma.store import leases, runs, tables
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run


def run_now(steps: Steps) -> Run:
    """The run's row as it is stored now."""
    with steps.store.read() as connection:
        return runs.get_run(connection, steps.run.name)


def test_a_play_by_hand_that_looked_too_early_does_not_take_the_run(tmp_path: Path, lab: LabFactory) -> None:
    """Two plays find the run free; the one that comes second is refused, and changes nothing."""
    steps = Steps.prepared(tmp_path / "a", lab())
    seen_free = run_now(steps)
    claim_supervision(steps.store, steps.run)

    with pytest.raises(VmHeld):
        start.take_over_in_play(replace(steps.free, run=seen_free))

    assert run_now(steps).supervisor_pid == os.getpid()
    assert start.lease_token(steps.free) is None


def test_a_controller_that_was_frozen_finds_its_run_taken(tmp_path: Path, lab: LabFactory) -> None:
    """The restore records that the run has no supervisor; a process that wakes up then stops."""
    steps = Steps.prepared(tmp_path / "a", lab())
    claim_supervision(steps.store, steps.run)
    steps.shape(steps.take())
    require_supervision(steps.store, steps.run)
    age_heartbeat(steps.store)

    said = restore_leftovers(steps.store, RestoreRequest())

    assert not said.problems
    assert steps.vm.at_baseline
    with pytest.raises(LeaseLost):
        require_supervision(steps.store, steps.run)


@pytest.mark.long
def test_a_run_that_wakes_after_its_vm_was_restored_power_cycles_nothing(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """It was frozen, controller and workers, while SQL Server was waited for: it ends with exit 8."""
    running = lab(faults=[{"kind": "sql_never", "boot": 2}])
    before = settings_now(running)
    study = write_study(tmp_path, power={"sql_timeout_s": 300}, limits={"attempts_per_cell": 3})
    arguments = command("run", study, "-i", write_inventory(tmp_path, running))
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as run:
        try:
            running.wait_for("tools_running")
            until(lambda: _frozen_without_lock(vnuma_home, run.pid), "wait for SQL Server")
            age_heartbeat(open_store(f"sqlite:///{vnuma_home / 'vnuma.db'}"))
            restored = vnuma("restore")
            assert restored.code == 0, restored.text
            assert settings_now(running) == before
            boots = len([event for event in running.events if event["event"] == "boot"])
        finally:
            for pid in reversed(_family(run.pid)):
                os.kill(pid, signal.SIGCONT)
        _, said = run.communicate(timeout=300)

    assert run.returncode == 8, said
    assert settings_now(running) == before
    assert len([event for event in running.events if event["event"] == "boot"]) == boots


def test_a_run_that_wakes_restores_what_somebody_gave_up(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's restore could not wait for the frozen process's lock: the VM is left off by neither."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)

    def restored_by_a_person() -> None:
        with steps.store.write() as connection:
            runs.clear_supervisor(connection, steps.run)
        with monkeypatch.context() as frozen:
            frozen.setattr(restore, "restore_vm", _cannot)
            with pytest.raises(NotAtBaseline):
                steps.restore()

    ended = Struck(running, restored_by_a_person).run(steps)

    assert settings_now(running) == before
    assert [done.vm for done in ended.restored] == ["sql16"]
    assert isinstance(ended.worst, LeaseLost), ended.problems


def test_a_restore_asks_what_was_changed_once_it_has_the_lock(tmp_path: Path, lab: LabFactory) -> None:
    """The process before it may change SQL Server until it lets the VM's lock go: that is undone too."""
    steps = Steps.prepared(tmp_path / "a", lab())
    context = steps.take()
    locked: list[bool] = []

    def source() -> Source:
        try:
            with vm_lock(context.home, context.vm.vm_key, context.vm.name, wait_s=0):
                locked.append(False)
        except VmHeld:
            locked.append(True)
        return source_in_store(context, "refuse")

    restore_vm(
        source,
        context.target,
        journal_of(context),
        home=context.home,
        fence=context.fence,
        tell=lambda *_: None,
        say=lambda _: None,
    )

    assert locked[-1]


def _cannot(*_given: object, **_by_name: object) -> Restored:
    raise VmHeld("process 1 on this machine holds sql16 and is stopped")


def age_heartbeat(store: Store) -> None:
    """Let it be so long since the supervisor was heard of that it counts as dead."""
    with store.write() as connection:
        connection.execute(update(tables.run).values(heartbeat_at=datetime.now(UTC) - SILENT_AFTER))


def _frozen_without_lock(home: Path, pid: int) -> bool:
    """Freeze a run while it waits for SQL Server; not in the moment in which it holds the VM's lock."""
    store = open_store(f"sqlite:///{home / 'vnuma.db'}")
    with store.read() as connection:
        (vm,) = leases.vms_of_run(connection, runs.get_run(connection, "small.1").id)
        if progress_of(connection, "small.1").vms[0].step != "guest_ready":
            return False
    family = _family(pid)
    for member in family:
        os.kill(member, signal.SIGSTOP)
    try:
        with vm_lock(home, vm.vm_key, vm.name, wait_s=0):
            return True
    except VmHeld:
        for member in family:
            os.kill(member, signal.SIGCONT)
        return False


def _family(pid: int) -> list[int]:
    """A process and all that it started, parents first."""
    found = [pid]
    for member in found:
        tasks = Path(f"/proc/{member}/task")
        found += [int(child) for task in tasks.glob("*/children") for child in task.read_text().split()]
    return found


def test_a_play_without_a_supervisor_is_heard_of_during_a_long_step(tmp_path: Path, lab: LabFactory) -> None:
    """Another controller takes a silent play for dead, and would restore its VM during a cell."""
    steps = Steps.prepared(tmp_path / "a", lab())

    with start.supervising(steps.store, steps.run, every_s=0.01):
        first = run_now(steps).heartbeat_at
        assert first
        until(lambda: (run_now(steps).heartbeat_at or first) > first, "heartbeat")


def test_a_living_run_does_not_keep_a_dead_runs_vm_from_being_restored(
    tmp_path: Path, lab: LabFactory
) -> None:
    """`vnuma restore` leaves the one alone, which is an error, and restores the other."""
    running = lab(vms=[{"name": "sql16", "memory_gb": 32}, {"name": "other", "memory_gb": 32}])
    living = Steps.prepared(tmp_path / "a", running)
    claim_supervision(living.store, living.run)
    living.take()
    dead = Steps.prepared(tmp_path / "a", running, name="second", vm="other")
    dead.take()

    said = restore_leftovers(dead.store, RestoreRequest())

    (held,) = said.problems
    assert held.exit_code == 8
    assert dead.vm.at_baseline
    assert not living.vm.at_baseline
