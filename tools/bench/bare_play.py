"""A play's round with as many tasks as a cell, all of which do nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAY = Path(__file__).with_name("plays") / "bare.yml"


def bare_cell_seconds(rounds: int) -> float:
    """Seconds of one round, from a play of `rounds` against a play of one."""
    short, whole = _play(1), _play(rounds + 1)
    return (whole - short) / rounds


def _play(rounds: int) -> float:
    """Wall time of the play, without the user's own Ansible configuration."""
    command = [str(Path(sys.executable).parent / "ansible-playbook"), str(PLAY), "-i", "bench,"]
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        start = time.perf_counter()
        subprocess.run(
            [*command, "-c", "local", "-e", f"rounds={rounds}"],
            check=True,
            capture_output=True,
            cwd=folder,
            env=clean | {"ANSIBLE_LOCALHOST_WARNING": "false"},
        )
        return time.perf_counter() - start
