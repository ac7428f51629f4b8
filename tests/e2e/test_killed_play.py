"""A play that dies costs an attempt, not the run: `vnuma run` continues by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import command
from tests.support.looking import settings_now
from tests.support.site import write_inventory, write_study
from tests.support.stores import attempt_lines
from tools.soak.points import Stage, Victim
from tools.soak.watch import Watch, found_process


@pytest.mark.long
def test_a_killed_play_is_replaced(tmp_path: Path, lab: LabFactory, vnuma_home: Path) -> None:
    """Killed during a boot: another starts, every cell is valid, the VM is restored."""
    running = lab(boot={"tools_seconds": 1.5})
    before = settings_now(running)
    study, inventory = write_study(tmp_path), write_inventory(tmp_path, running)
    with subprocess.Popen(
        command("run", study, "-i", inventory), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        watch = Watch(running, vnuma_home, "small.1")
        assert watch.begins(Stage.WAITING, lambda: process.poll() is not None)
        struck = found_process(Victim.PLAYBOOK, process.pid)
        assert struck
        os.kill(struck, signal.SIGKILL)
        _, said = process.communicate(timeout=240)

    assert process.returncode == 0, said
    assert settings_now(running) == before
    outcomes = [str(line.outcome) for line in attempt_lines(watch.store)]
    assert outcomes.count("valid") == 2
    assert outcomes.count("interrupted") == 1
