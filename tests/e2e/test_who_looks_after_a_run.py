"""Which process looks after a run: one at a time, and never one that only has its number."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.claim import claim
from vnuma.engine.put_back import put_back_left
from vnuma.engine.recover import is_alive, look_after
from vnuma.engine.unsupervised import saying_so
from vnuma.errors import VmHeld
from vnuma.store import runs
from vnuma.store.rows import Run


def run_now(steps: Steps) -> Run:
    """The run's row as it is stored now."""
    with steps.store.read() as connection:
        return runs.get_run(connection, steps.run.name)


def test_a_process_that_began_after_the_last_sign_of_life_is_another_one(
    tmp_path: Path, lab: LabFactory
) -> None:
    """After a reboot the supervisor's number belongs to anybody: the run counts as dead."""
    steps = Steps.prepared(tmp_path / "a", lab())
    look_after(steps.store, steps.run)
    alive = run_now(steps)
    heard = datetime.now(UTC) - timedelta(days=1)

    assert is_alive(alive)
    assert not is_alive(replace(alive, heartbeat_at=heard))
    assert not is_alive(replace(alive, supervisor_pid=None))


def test_a_run_is_looked_after_by_one_process(tmp_path: Path, lab: LabFactory) -> None:
    """Two `vnuma run --resume` at once: the second is refused before it touches anything."""
    steps = Steps.prepared(tmp_path / "a", lab())
    with steps.store.write() as connection:
        runs.touch_supervisor(connection, steps.run.id, pid=os.getppid(), host=socket.gethostname())

    with pytest.raises(VmHeld, match=str(os.getppid())):
        look_after(steps.store, steps.run)

    assert run_now(steps).supervisor_pid == os.getppid()


def test_a_cell_does_not_wait_for_a_dead_runs_measurement(tmp_path: Path, lab: LabFactory) -> None:
    """Nobody will end it: who waited for the host would wait for ever."""
    running = lab(vms=[{"name": "sql16", "memory_gb": 32}, {"name": "other", "memory_gb": 32}])
    dead = Steps.prepared(tmp_path / "a", running)
    claim(dead.take())
    living = Steps.prepared(tmp_path / "a", running, name="second", vm="other")
    look_after(living.store, living.run)

    with pytest.raises(VmHeld, match=r"no process looks after small\.1"):
        claim(living.take())


def test_a_play_without_a_supervisor_is_heard_of_during_a_long_step(tmp_path: Path, lab: LabFactory) -> None:
    """Another controller takes a silent play for dead, and would put its VM back in the middle of a cell."""
    steps = Steps.prepared(tmp_path / "a", lab())

    with saying_so(steps.store, steps.run, every_s=0.01):
        first = run_now(steps).heartbeat_at
        assert first
        until(lambda: (run_now(steps).heartbeat_at or first) > first)


def test_a_living_run_does_not_keep_a_dead_runs_vm_from_being_put_back(
    tmp_path: Path, lab: LabFactory
) -> None:
    """`vnuma restore` leaves the one alone, says so, and puts the other back."""
    running = lab(vms=[{"name": "sql16", "memory_gb": 32}, {"name": "other", "memory_gb": 32}])
    living = Steps.prepared(tmp_path / "a", running)
    look_after(living.store, living.run)
    living.take()
    dead = Steps.prepared(tmp_path / "a", running, name="second", vm="other")
    dead.take()

    said = put_back_left(f"sqlite:///{tmp_path / 'a' / 'vnuma.db'}", [], None, None, "refuse", print)

    assert said.in_use == ["sql16, by small.1, which is running"]
    assert not said.problems
    assert dead.vm.at_baseline
    assert not living.vm.at_baseline


def until(condition: Callable[[], bool]) -> None:
    """Come back as soon as the condition holds."""
    deadline, pause = time.monotonic() + 120, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.01)
