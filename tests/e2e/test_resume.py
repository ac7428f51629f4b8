"""Stopping, dying and going on: no finished cell repeated, no sample lost, the VM restored."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import command, status, vnuma, vnuma_here
from tests.support.looking import change_by_hand, settings_now, settings_of, until
from tests.support.site import write_inventory, write_study
from tests.support.stores import attempt_lines
from tools.bench.processes import PROC
from tools.soak.points import Stage, Victim
from tools.soak.watch import Watch, found_process
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.lease.supervision import ask_to_stop
from vnuma.engine.run.start import reopen, what_it_did
from vnuma.errors import InputError, Interrupted, StoreError
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.database import dataset, ownership
from vnuma.store import runs, samples
from vnuma.store.open import Store, open_store
from vnuma.store.rows import RunState, StopRequest

LONGER = {"iterations": 3}
ENDLESS = {"blocks": 40}
"""For a run that continues until it is ended, however long that takes."""


@cache
def store_of(home: Path) -> Store:
    """The store that the commands of this test write to, opened once: tests look into it again and again."""
    return open_store(f"sqlite:///{home / 'vnuma.db'}")


def valid_cells(home: Path) -> list[str]:
    """The labels of the cells that have their valid attempt."""
    return [line.label for line in attempt_lines(store_of(home)) if line.outcome == "valid"]


def start(study: Path, inventory: Path) -> subprocess.Popen[str]:
    """A run in a process group of its own, as from a terminal."""
    return subprocess.Popen(
        command("run", study, "-i", inventory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def begun(home: Path, cells: int) -> Callable[[], bool]:
    """Whether that many cells are valid and the next attempt is running."""

    def condition() -> bool:
        if not (home / "vnuma.db").exists():
            return False
        try:
            seen = attempt_lines(store_of(home))
        except (InputError, StoreError):  # the store is being made at this very moment
            return False
        valid = sum(line.outcome == "valid" for line in seen)
        return valid >= cells and bool(seen) and seen[-1].outcome is None

    return condition


def processes_of(home: Path) -> list[str]:
    """The commands of all processes that were given a file of this home."""
    commands = []
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                commands.append((folder / "cmdline").read_text(encoding="utf-8", errors="replace"))
    return [command for command in commands if f"{home}/" in command]


def test_ctrl_c_restores_the_vm_and_keeps_its_cells(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """SIGINT: exit 130."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    process = start(write_study(tmp_path, design=LONGER), inventory)
    until(begun(vnuma_home, 1), "second cell")

    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)

    assert process.returncode == 130, said
    assert settings_now(running) == before
    assert len(valid_cells(vnuma_home)) == 1


@pytest.mark.long
def test_a_third_ctrl_c_ends_a_run_whose_vcenter_is_gone(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """Within 5 s, exit 7, with VM and command; that command restores the VM once vCenter is back."""
    running = lab()
    before = settings_now(running)
    process = start(write_study(tmp_path, design=ENDLESS), write_inventory(tmp_path, running))
    until(begun(vnuma_home, 1), "second cell")
    os.kill(running.pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=5)
    finally:
        os.kill(running.pid, signal.SIGCONT)

    assert process.returncode == 7, said
    restored = vnuma("restore", "--run", "small.1")
    assert restored.code == 0, restored.text
    assert settings_now(running) == before


def test_a_lost_dataset_is_made_again(tmp_path: Path, lab: LabFactory) -> None:
    """Dropped between two cells by somebody else: the second cell waits for nothing and is valid."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, power={"sql_timeout_s": 600})
    context = steps.take()
    steps.measure(context)
    with connect(context.sql()) as connection:
        assert dataset.drop(connection, steps.study.dataset.database)

    began = time.monotonic()
    steps.measure(context)

    assert time.monotonic() - began < 60
    with connect(context.sql()) as connection:
        assert ownership.require_ours(connection, steps.study.dataset.database)


def test_a_wait_for_sql_server_ends_when_the_run_is_asked_to_stop(tmp_path: Path, lab: LabFactory) -> None:
    """Within seconds, though SQL Server may take ten minutes."""
    running = lab(faults=[{"kind": "sql_never", "vm": "sql16", "boot": 2}])
    steps = Steps.prepared(tmp_path / "a", running, power={"sql_timeout_s": 600})
    context = steps.take()
    attempt = steps.shape(context)
    boot_cell(context, attempt)
    with steps.store.write() as connection:
        runs.request_stop(connection, steps.run.id, StopRequest.NOW)

    began = time.monotonic()
    with pytest.raises(Interrupted):
        ready_cell(context, attempt)

    assert time.monotonic() - began < 10


def test_after_kill_9_a_resume_loses_and_repeats_nothing(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """The controller dies in the middle of a cell; finished cells stay, the run completes, the VM is back.

    The play that it leaves behind ends by itself.
    """
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    process = start(write_study(tmp_path, design=LONGER), inventory)
    until(begun(vnuma_home, 1), "second cell")

    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=240)
    kept = valid_cells(vnuma_home)

    resumed = vnuma("run", "--resume", "small.1")

    assert resumed.code == 0, resumed.text
    assert settings_now(running) == before
    until(lambda: not processes_of(vnuma_home), "end of the dead run's play")
    after = valid_cells(vnuma_home)
    assert after[: len(kept)] == kept
    assert len(after) == 2
    with store_of(vnuma_home).read() as connection:
        run = runs.get_run(connection, "small.1")
        valid = [s for s in samples.iter_samples(connection, run.id) if s.attempt_outcome == "valid"]
    assert len(valid) == 2 * 3

    written = vnuma_here("audit").out
    complete = vnuma("run", "--resume", "small.1")
    assert complete.code == 0, complete.text
    assert vnuma_here("audit").out == written, "a complete run was resumed, and its VM marked again"


def repeated(home: Path) -> bool:
    """Whether a VM whose attempt was interrupted has measured a valid cell since."""
    lines = attempt_lines(store_of(home))
    cut = {line.vm_id: line.id for line in reversed(lines) if line.outcome == "interrupted"}
    return any(line.id > cut.get(line.vm_id, line.id) and line.outcome == "valid" for line in lines)


@pytest.mark.long
def test_killed_processes_of_a_run_cost_neither_its_vms_nor_what_others_changed(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """A worker dies: its cell is repeated, and a second run is refused (8). The controller dies: each VM is
    restored and powered on, but one that somebody changed since is left alone (7) until a person decides.

    Ansible's own host_pinned would wait for the dead worker forever.
    """
    vms = {"ours": "esx01", "theirs": "esx02"}
    running = lab(
        hosts=[{"name": host} for host in vms.values()],
        vms=[{"name": name, "host": host, "memory_gb": 32} for name, host in vms.items()],
        boot={"tools_seconds": 1.5},
    )
    names = list(vms)
    before = settings_of(running, names)
    inventory = write_inventory(tmp_path, running)
    process = start(write_study(tmp_path, vms=names, design=ENDLESS), inventory)
    assert Watch(running, vnuma_home, "small.1").begins(Stage.WAITING, lambda: process.poll() is not None)
    struck = found_process(Victim.WORKER, process.pid)
    assert struck
    os.kill(struck, signal.SIGKILL)
    until(lambda: repeated(vnuma_home) or process.poll() is not None, "repeated cell")
    assert process.poll() is None

    second = vnuma("run", write_study(tmp_path, vms=names), "-i", inventory)

    assert second.code == 8, second.text
    until(lambda: all(one["locked"] for one in settings_of(running, names).values()), "changed VMs")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=240)
    until(lambda: not processes_of(vnuma_home), "end of the dead run's play")
    change_by_hand(running, "theirs", cpuAllocation=vim.ResourceAllocationInfo(reservation=500))
    left = settings_of(running, names)
    assert all(one["locked"] for one in left.values())

    refused = vnuma("restore")

    assert refused.code == 7, refused.text
    # Its settings are theirs; a VM that the dead run left off is powered on all the same.
    kept = {**left["theirs"], "power": "poweredOn"}
    assert settings_of(running, names) == {"ours": before["ours"], "theirs": kept}
    assert before["ours"]["power"] == "poweredOn"

    decided = vnuma("restore", "theirs", "--baseline")

    assert decided.code == 0, decided.text
    assert settings_of(running, names) == before
    assert status()["not_at_baseline"] == []


@pytest.mark.long
def test_the_next_run_restores_what_a_dead_one_left(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """Before it begins."""
    running = lab()
    inventory = write_inventory(tmp_path, running)
    before = settings_now(running)
    process = start(write_study(tmp_path, design=ENDLESS), inventory)
    until(begun(vnuma_home, 0), "first cell")
    until(lambda: settings_now(running)["locked"], "changed VM")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=240)

    ran = vnuma("run", write_study(tmp_path), "-i", inventory)

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
    assert status()["not_at_baseline"] == []
    _, progress = reopen(store_of(vnuma_home), "small.1")
    assert [(vm.block, vm.last[0][1].partition(",")[0]) for vm in progress.vms] == [(1, "interrupted")]
    assert what_it_did(progress)


@pytest.mark.long
def test_stop_from_another_terminal_ends_the_run(tmp_path: Path, lab: LabFactory, vnuma_home: Path) -> None:
    """`vnuma stop` asks; the run's own process restores the VM and ends with the code of missing cells."""
    running = lab()
    before = settings_now(running)
    process = start(write_study(tmp_path, design=ENDLESS), write_inventory(tmp_path, running))
    until(begun(vnuma_home, 1), "second cell")

    asked = vnuma("stop", "latest")
    _, said = process.communicate(timeout=240)

    assert asked.code == 0
    assert process.returncode == 6, said
    assert settings_now(running) == before


@pytest.mark.long
def test_a_stop_that_comes_with_the_last_cell_leaves_nothing_undone(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path
) -> None:
    """Every cell is valid: the run is finished, exit code 0, and the VM is back."""
    running = lab()
    before = settings_now(running)
    process = start(write_study(tmp_path), write_inventory(tmp_path, running))
    until(begun(vnuma_home, 1), "last cell")

    ask_to_stop("latest", after_cell=True, url=f"sqlite:///{vnuma_home / 'vnuma.db'}")
    _, told = process.communicate(timeout=240)

    assert process.returncode == 0, told
    assert len(valid_cells(vnuma_home)) == 2
    assert settings_now(running) == before
    with store_of(vnuma_home).read() as connection:
        assert runs.get_run(connection, "latest").state is RunState.FINISHED
