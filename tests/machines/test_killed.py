"""Engine and play killed in the middle of a pass: settings and files of the machine are restored.

On a real kernel, emulated, and on the lab's Linux machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import LabFactory
from tests.machines.on_guest import LOCAL, LOOK, REMOTE, study_text
from tests.support.cli import command, status, vnuma
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import ask_machine, write_machines

HELD = "0\nalways [madvise] never"


class Machine(Protocol):
    """A machine, `emulated` in its inventory, and what a script prints that root runs there."""

    @property
    def inventory(self) -> Path:
        """Where Ansible finds it."""

    def ask(self, script: str) -> str:
        """By SSH, without vnuma and Ansible."""


@dataclass(frozen=True)
class LabMachine:
    """The lab's, with a disk at /data."""

    lab: LabHandle
    inventory: Path

    def ask(self, script: str) -> str:
        """What a script prints."""
        return ask_machine(self.lab, script)


@pytest.fixture(params=["a kernel", "the lab"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, lab: LabFactory) -> Machine:
    """Each of them in turn."""
    if request.param == "a kernel":
        emulated: Machine = request.getfixturevalue("guest")
        return emulated
    running = lab({"name": "killed", "vms": [], "machines": [{"name": "emulated"}]})
    ask_machine(running, "mkdir -p /data")
    return LabMachine(running, write_machines(tmp_path, running))


def until(condition: Callable[[], bool], what: str, timeout_s: float = 240) -> None:
    """Come back as soon as the condition holds."""
    deadline, pause = time.monotonic() + timeout_s, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"no {what}"
        pause.wait(0.05)


def plays() -> set[int]:
    """The processes of ansible-playbook that are plays of this test's study."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
            home = f"VNUMA_HOME={os.environ['VNUMA_HOME']}".encode()
            if any(word.endswith(b"ansible-playbook") for word in words[:2]):
                found |= {int(entry.name)} if home in (entry / "environ").read_bytes() else set()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def began(machine: Machine, study: Path) -> subprocess.Popen[str]:
    """A run whose first pass holds the kernel's settings now."""
    process = subprocess.Popen(
        command("run", study, "-i", machine.inventory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    until(lambda: answer_of(machine).startswith(HELD), "pass under way")
    return process


def answer_of(machine: Machine) -> str:
    """Its kernel settings; nothing while it boots."""
    try:
        return machine.ask(LOOK)
    except subprocess.CalledProcessError:
        return ""


def kill_play() -> None:
    """Without a word, and its workers with it."""
    for number in plays():
        os.kill(number, signal.SIGKILL)


def killed(machine: Machine, study: Path) -> None:
    """A run of which nothing is left on this machine: engine and play died in the first pass."""
    process = began(machine, study)
    kill_play()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.fixture
def study(tmp_path: Path, machine: Machine) -> Path:
    """Two passes that hold both kernel settings, long enough to be met at work."""
    quick = isinstance(machine, LabMachine)
    path = tmp_path / "study.yml"
    path.write_text(
        study_text(arms=f"[{REMOTE}, {LOCAL}]", size=100, iterations=20 if quick else 1), encoding="utf-8"
    )
    return path


@pytest.mark.long
def test_after_kill_9_of_engine_and_play_a_restore_and_a_resume_make_it_good(
    machine: Machine, study: Path
) -> None:
    """`vnuma restore MACHINE` restores settings and files; the resumed run measures every cell."""
    before = machine.ask(LOOK)
    killed(machine, study)

    differs = vnuma("baseline", "diff", "emulated")
    told = vnuma("restore", "emulated", "--dry-run")
    restored = vnuma("restore", "emulated")

    assert "linux.numa_balancing" in differs.out, differs.text
    assert "linux.numa_balancing: 0 -> 1" in told.out, told.text
    assert restored.code == 0, restored.text
    assert machine.ask(LOOK) == before
    assert status()["not_at_baseline"] == []

    resumed = vnuma("run", "--resume", "emulated.1")
    assert resumed.code == 0, resumed.text

    assert machine.ask(LOOK) == before


@pytest.mark.long
def test_a_shaped_guest_that_a_kill_left_is_restored_with_its_vm(tmp_path: Path, lab: LabFactory) -> None:
    """`vnuma restore` brings the VM back first, then removes the files in the guest that boots again."""
    vm = {"name": "emulated", "vcpus": 16, "memory_gb": 64}
    running = lab({"name": "killed", "vms": [vm], "machines": [{"name": "emulated", "vm": "emulated"}]})
    machine = LabMachine(running, write_machines(tmp_path, running))
    before = settings_now(running)
    arm = "{topology: 2x8, name: remote, affinity: physical_cores, workload: {memory_node: 1}}"
    text = study_text(arms=f"[{arm}]", size=100, iterations=20).replace("folder: /data", "folder: /var/tmp")
    study = tmp_path / "study.yml"
    study.write_text(f"{text}vcpus: 16\n", encoding="utf-8")

    killed(machine, study)
    left = machine.ask("ls /var/tmp")
    restored = vnuma("restore", "emulated")

    assert "vnuma-page-cache" in left
    assert restored.code == 0, restored.text
    assert settings_now(running) == before
    assert machine.ask("ls /var/tmp") == ""
