"""A run's private folder lasts as long as its process, and no longer, whoever shares the home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from vnuma.engine.access.private_folder import private_folder

OWNS = """
import sys, time
from pathlib import Path
from vnuma.engine.access.private_folder import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "private.json").write_text("secret")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_living_process_keeps_its_folder_whatever_its_number_is_here(tmp_path: Path) -> None:
    """Another host, or a container, that shares the home has other processes under the same numbers."""
    with _owner(tmp_path) as owner:
        folder = _told(owner)
        try:
            for _ in range(2):
                with private_folder(tmp_path):
                    assert (folder / "private.json").exists()
            assert str(owner.pid) not in folder.name
        finally:
            owner.kill()


def test_what_a_killed_process_left_goes_with_the_next_command(tmp_path: Path) -> None:
    """Secrets in clear text do not outlive their run, be it that nobody has waited for its process."""
    with _owner(tmp_path) as owner:
        folder = _told(owner)
        owner.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now

        with private_folder(tmp_path) as own:
            assert not folder.exists()
            assert own.stat().st_mode & 0o777 == 0o700

    assert not list((tmp_path / "private").iterdir())


def test_a_folder_of_an_earlier_version_is_removed(tmp_path: Path) -> None:
    """It has no lock: its name was its process number."""
    left = tmp_path / "private" / "4711-abc"
    left.mkdir(parents=True)
    (left / "private.json").write_text("secret")

    with private_folder(tmp_path):
        assert not left.exists()


def _owner(home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", OWNS, str(home)], stdout=subprocess.PIPE, text=True)


def _told(owner: subprocess.Popen[str]) -> Path:
    assert owner.stdout is not None
    return Path(owner.stdout.readline().strip())
