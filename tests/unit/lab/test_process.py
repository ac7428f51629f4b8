"""A lab that stays: it outlives its starter, is found again, and is stopped without hitting others."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vnuma import lab
from vnuma.errors import EnvironmentProblem


@pytest.fixture
def folder(tmp_path: Path, lab_binary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder whose lab, if there is one, is stopped after the test."""
    monkeypatch.setenv("VNUMA_LAB", str(lab_binary))
    folder = tmp_path / "state"
    yield folder
    lab.down(folder)


def test_a_lab_answers_as_soon_as_it_is_up(folder: Path) -> None:
    """When `up` returns, vCenter answers under the certificate that the state names."""
    state = lab.up(state_dir=folder)
    trust = ssl.create_default_context(cafile=state.ca_file)

    with (
        socket.create_connection((state.host, state.port)) as plain,
        trust.wrap_socket(plain, server_hostname=state.host) as connection,
    ):
        assert connection.version() is not None
    assert [vm.name for vm in state.vms] == ["sql16"]


def test_only_the_owner_can_read_state_and_password(folder: Path) -> None:
    """The state folder is private, and no file in it is open to others."""
    lab.up(state_dir=folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "lab.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600


def test_the_lab_outlives_the_command_that_started_it(folder: Path) -> None:
    """A lab started by another process is found, the same, after that process ended."""
    program = (
        f"from pathlib import Path; from vnuma import lab; print(lab.up(state_dir=Path({str(folder)!r})).pid)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    state = lab.status(folder)

    assert state is not None
    assert state.pid == int(done.stdout)


def test_a_second_lab_in_the_same_folder_is_refused(folder: Path) -> None:
    """One state folder has one lab: the error names the running one and how to stop it."""
    first = lab.up(state_dir=folder)

    with pytest.raises(EnvironmentProblem, match=rf"process {first.pid}.*\n.*vnuma lab down"):
        lab.up(state_dir=folder)
    assert lab.status(folder) == first


def test_down_ends_the_lab_and_forgets_it(folder: Path) -> None:
    """After `down` nothing listens; a second `down` says that there was nothing to stop."""
    state = lab.up(state_dir=folder)

    assert lab.down(folder) is True
    assert lab.status(folder) is None
    assert lab.down(folder) is False
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((state.host, state.port)).close()


def test_a_lab_can_be_started_again_in_its_folder(folder: Path) -> None:
    """The second lab of a folder is a new process, with its own state."""
    first = lab.up(state_dir=folder)
    lab.down(folder)
    second = lab.up("null", folder)

    assert second.pid != first.pid
    assert second.scenario == "null"


def test_a_process_that_took_over_the_number_is_not_touched(folder: Path) -> None:
    """A state file that names a process of another start time stops nothing."""
    state = lab.up(state_dir=folder)
    lab.down(folder)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        fields = {**json.loads(_as_json(state)), "pid": other.pid}
        (folder / "lab.json").write_text(json.dumps(fields))

        assert lab.status(folder) is None
        assert lab.down(folder) is False
        assert other.poll() is None


def test_a_lab_that_cannot_start_is_an_error(folder: Path) -> None:
    """A scenario that does not exist ends the lab, and none is left."""
    with pytest.raises(EnvironmentProblem):
        lab.up("no-such-scenario", folder)
    assert lab.status(folder) is None


def test_a_damaged_state_file_is_named(folder: Path) -> None:
    """An invalid state file is an error that names the file, not a crash."""
    folder.mkdir()
    (folder / "lab.json").write_text("{}")

    with pytest.raises(EnvironmentProblem) as caught:
        lab.status(folder)
    (folder / "lab.json").unlink()
    assert str(folder / "lab.json") in caught.value.what


def _as_json(state: lab.LabState) -> str:
    fields = {**vars(state), "vms": [vars(vm) for vm in state.vms]}
    return json.dumps(fields, default=str)
