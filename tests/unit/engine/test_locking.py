"""The lock on a VM: one step at a time, and nobody waits forever or silently."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vnuma.domain.study.study import PowerRules
from vnuma.engine.access import locking
from vnuma.engine.access.context import holder
from vnuma.engine.access.locking import patience_s, vm_lock
from vnuma.errors import VmHeld


def test_who_waits_says_so_once_and_gives_up(tmp_path: Path) -> None:
    """After the time that it was given."""
    said: list[str] = []
    with (
        vm_lock(tmp_path, "v/1", "sql16"),
        pytest.raises(VmHeld),
        vm_lock(tmp_path, "v/1", "sql16", wait_s=0.02, say=said.append),
    ):
        pass
    assert len(said) == 1


def test_the_holder_is_the_account_that_runs_and_not_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LOGNAME and USER are anybody's to set; an account without a name is a number."""
    for name in ("LOGNAME", "USER"):
        monkeypatch.setenv(name, "boss")
    assert holder().startswith(f"{pwd.getpwuid(os.getuid()).pw_name}@")

    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert holder().startswith(f"{2**31 - 7}@")


@pytest.mark.parametrize("late_s", [1, 3600, 86_400])
def test_who_waits_gives_up_no_sooner_than_a_late_shutdown_may_end(late_s: float) -> None:
    """The holder watches its guest that long after the usual time, and then boots it."""
    rules = PowerRules(shutdown_timeout_s=600, late_shutdown_s=late_s, tools_timeout_s=600)

    assert patience_s(rules) > 600 + late_s + 600


@pytest.mark.parametrize("execution_s", [60, 3600, 86_400])
def test_who_waits_gives_up_no_sooner_than_the_longest_execution_ends(execution_s: float) -> None:
    """A program of a day is given its day, and the time to end it."""
    assert patience_s(PowerRules(), execution_s) > execution_s + 60


HOLDS = """
import sys, time
from pathlib import Path
from vnuma.engine.access.locking import vm_lock
with vm_lock(Path(sys.argv[1]), "v/1", "sql16"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_holder_that_is_stopped_is_not_waited_for_as_long_as_one_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen worker ends no step: whoever restores the VM gets the process to end."""
    monkeypatch.setattr(locking, "STOPPED_S", 0.05)
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            os.kill(holder.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)

            began = time.monotonic()
            with (
                pytest.raises(VmHeld),
                vm_lock(tmp_path, "v/1", "sql16", wait_s=40),
            ):
                pass
            assert time.monotonic() - began < 40
        finally:
            holder.kill()
    with vm_lock(tmp_path, "v/1", "sql16"):
        pass


def test_a_lock_is_handed_on_as_soon_as_it_is_free(tmp_path: Path) -> None:
    """Whoever waits gets it; another VM's lock is not waited for."""
    got, waits = threading.Event(), threading.Event()

    def second() -> None:
        with vm_lock(tmp_path, "v/1", "sql16", say=lambda _: waits.set()):
            got.set()

    with vm_lock(tmp_path, "v/1", "sql16"), vm_lock(tmp_path, "v/2", "sql17"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(120)
        assert not got.is_set()
    thread.join(120)
    assert got.is_set()
