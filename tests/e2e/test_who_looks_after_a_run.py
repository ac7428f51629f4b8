"""Which process looks after a run: one at a time, and never one that only has its number."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.recover import is_alive, look_after
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
