"""Calls from another host than vnuma's own, over SSH, and what keeps that host from calling."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory, write_study
from tests.support.sshd import SshServer, ssh_server
from vnuma.errors import PreflightBlocked

NAME = "loadgen"
CALLS: dict[str, Any] = {
    "name": "call_volume",
    "client": NAME,
    "forms": ["noop"],
    "sizes": [2],
    "window_s": 0.3,
    "ramp_s": 0.1,
    "seek_rows": 50,
}


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[SshServer]:
    """An SSH server of the test's own."""
    with ssh_server(tmp_path / "ssh") as server:
        yield server


def site(folder: Path, lab: LabHandle, variables: dict[str, object]) -> Path:
    """The lab's inventory, and the machine that calls."""
    path = write_inventory(folder, lab)
    inventory = json.loads(path.read_text(encoding="utf-8"))
    inventory["all"]["hosts"] = {NAME: variables}
    path.write_text(json.dumps(inventory), encoding="utf-8")
    return path


def study(folder: Path, **changes: Any) -> Path:
    """One cell of calls."""
    return write_study(folder, workload=CALLS | changes, reference="1x16", arms=["1x16"])


def steps(folder: Path, lab: LabHandle, variables: dict[str, object]) -> Steps:
    """A run of that study, prepared."""
    return Steps.of(folder, site(folder, lab, variables), study(folder))


def test_calls_come_from_the_machine_that_the_study_names(
    tmp_path: Path, lab: LabFactory, ssh: SshServer
) -> None:
    """Over a real SSH connection: the server counts them, and the result says who called and with what."""
    made = steps(tmp_path, lab("paper"), ssh.variables)

    made.measure(made.take())

    sample = made.samples[0].sample
    assert sample.value is not None
    assert sample.value > 0
    assert sample.figures is not None
    assert 0 <= sample.figures["client CPU headroom"] <= 100
    known: dict[str, Any] = {fact.key: fact.value for fact in made.facts("workload")}
    assert known["noop: sent by"].startswith(f"{NAME}, freetds")
    assert known["noop: sent as"] == "RPC Event: dbo.noop;1"
    assert known["noop: 2 connections"]["client_cpus"] >= 1
    assert "Accepted publickey" in ssh.log.read_text(encoding="utf-8")


def test_a_password_is_in_no_argument_of_the_client_and_in_no_log(
    tmp_path: Path, lab: LabFactory, ssh: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection string goes by the input of the process, never by what `ps` or a log shows."""
    from vnuma.workloads.client import ClientHost  # noqa: PLC0415 - the class whose commands are watched

    seen: list[str] = []
    connect = ClientHost.order

    def watched(self: ClientHost, do: str, **values: object) -> None:
        connect(self, do, **values)
        seen.append(" ".join(every_command()))

    monkeypatch.setattr(ClientHost, "order", watched)
    running = lab("paper")
    made = steps(tmp_path, running, ssh.variables)

    made.measure(made.take())

    secret = running.vms["sql16"].password
    assert len(seen) > 5
    assert not any(secret in arguments for arguments in seen)
    assert secret not in ssh.log.read_text(encoding="utf-8")


def every_command() -> Iterator[str]:
    """The command line of each process that runs; one may end while they are read."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            yield entry.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"ansible_port": 1}, "refused"),
        ({"ansible_python_interpreter": "/no/such/python3"}, "[Nn]o such file"),
        ({"ansible_private_key_file": "/dev/null"}, "Permission denied"),
        ({"ansible_python_interpreter": "{without_packages}"}, "'pyodbc'"),
    ],
)
def test_what_keeps_the_client_from_calling_is_said_before_anything_starts(
    tmp_path: Path, shared_lab: LabHandle, ssh: SshServer, variables: dict[str, object], says: str
) -> None:
    """The machine and the reason; nothing is changed."""
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nexec /usr/bin/env -i "$BARE" -S -E "$@"\n'.replace("$BARE", sys.executable))
    bare.chmod(0o755)
    own = {name: bare if value == "{without_packages}" else value for name, value in variables.items()}

    with pytest.raises(PreflightBlocked, match=f"(?s)loadgen.*{says}"):
        steps(tmp_path, shared_lab, {**ssh.variables, **{name: str(value) for name, value in own.items()}})


def test_a_client_that_is_not_in_the_inventory_is_refused(tmp_path: Path, shared_lab: LabHandle) -> None:
    """The study's or the inventory's mistake: exit 3."""
    inventory = write_inventory(tmp_path, shared_lab)

    assert vnuma_here("plan", study(tmp_path), "-i", inventory).code == 3


def test_a_client_may_be_reached_by_ansibles_local_connection(tmp_path: Path, lab: LabFactory) -> None:
    """As a host of its own name on the machine that vnuma runs on."""
    made = steps(tmp_path, lab("paper"), {"ansible_connection": "local"})

    made.measure(made.take())

    assert [stored.sample.reason for stored in made.samples] == [None, None]
