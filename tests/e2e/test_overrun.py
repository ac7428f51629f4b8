"""A run whose window ends during a cell: stopped, restored, and resumable within the hours."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from vnuma.domain.study.study import DAYS
from vnuma.engine.run import oversight
from vnuma.engine.run import supervise as supervision
from vnuma.engine.run.progress import Progress
from vnuma.errors import CellsMissing
from vnuma.store.tables import utc_now

RESTORE_S = 60.0


def hours() -> dict[str, Any]:
    """Open now, and closed on a day after tomorrow: to the steps of a cell, whose clock is the real one.

    Only the supervisor is shown another.
    """
    today = utc_now().weekday()
    windows = [f"{DAYS[(today + ahead) % 7]} 00:00-24:00" for ahead in range(-2, 3)]
    return {"time_zone": "UTC", "windows": windows, "restore_s": RESTORE_S}


class Clock:
    """Stands still until a cell is running, and then shows the time when restoring has to start."""

    def __init__(self, closes: datetime) -> None:
        self._now = utc_now()
        self._over = closes - timedelta(seconds=RESTORE_S)
        self.busy = False

    def __call__(self) -> datetime:
        """The supervisor's now."""
        return self._over if self.busy else self._now

    def watch(self, progress: Progress) -> None:
        """As `vnuma run` shows progress."""
        self.busy = self.busy or any(vm.step for vm in progress.vms)


@pytest.mark.long
def test_a_real_run_that_overruns_is_stopped_restored_and_resumed(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor stops its play at the deadline; the VM is restored, and the message says when."""
    running = lab(boot={"tools_seconds": 1.5})
    before = settings_now(running)
    path, inventory = write_study(tmp_path, allowed_hours=hours()), write_inventory(tmp_path, running)
    vnuma_home.mkdir()
    steps = Steps.of(tmp_path, inventory, path, f"sqlite:///{vnuma_home / 'vnuma.db'}")
    assert steps.study.allowed_hours
    closes = steps.study.allowed_hours.closes(utc_now())
    assert closes
    clock = Clock(closes)
    for supervisor in (supervision, oversight):
        monkeypatch.setattr(supervisor, "utc_now", clock)

    ended = supervision.supervise(steps.work, clock.watch)

    assert clock.busy
    assert ended.progress.valid < ended.progress.total
    assert ended.progress.run.state == "stopped"
    assert settings_now(running) == before
    with pytest.raises(CellsMissing) as told:
        ended.raise_for_outcome()
    assert told.value.fix == "vnuma run --resume small.1, within the allowed hours."

    resumed = vnuma("run", "--resume", "small.1")
    assert resumed.code == 0, resumed.text
    assert settings_now(running) == before
