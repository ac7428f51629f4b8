"""Logins by Kerberos: a real KDC, both drivers, and a server that checks tickets with its keytab."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sqlserver.support import driver_of, server_of
from tests.support import kdc as private_kdc
from tests.support.kdc import Kdc
from tests.support.lab import LabHandle
from vnuma.errors import LoginRefused
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import Kind
from vnuma.sqlserver.client.query import value

ACCOUNT = "svc-vnuma"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm with the study's account. Without the programs: skipped, but a failure where CI is set."""
    if reason := private_kdc.lacking():
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    running = private_kdc.start(tmp_path_factory.mktemp("kdc"))
    running.keytab(ACCOUNT)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def kerberos_lab(kdc: Kdc, lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """A lab whose SQL Server has an SPN and its keytab."""
    keytab = kdc.folder / "sql.keytab"
    running = LabHandle(lab_binary, tmp_path_factory.mktemp("lab"), ["--keytab", str(keytab)])
    kdc.keytab(f"MSSQLSvc/localhost:{running.vms['sql16'].port}", name=keytab.name)
    running.wait_for("sql_listening")
    yield running
    running.stop()


@pytest.fixture(params=["freetds", "msodbcsql18"])
def server(
    request: pytest.FixtureRequest, kdc: Kdc, kerberos_lab: LabHandle, monkeypatch: pytest.MonkeyPatch
) -> SqlServer:
    """That SQL Server by each driver, and no ticket."""
    kind: Kind = request.param
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    (kdc.folder / "cache").unlink(missing_ok=True)
    driver = driver_of(kind)
    return server_of(kerberos_lab, driver=driver, host="localhost", user="", password="", kerberos=True)


def _refused(server: SqlServer) -> str:
    """What is said of a login that fails, with the next step, in one line each."""
    with pytest.raises(LoginRefused) as caught, connect(server):
        pass
    assert "\n" not in caught.value.what
    return f"{caught.value.what} {caught.value.fix}"


def test_a_ticket_logs_in(kdc: Kdc, server: SqlServer) -> None:
    """The server knows the account by its ticket alone."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)

    with connect(server) as connection:
        mine = "FROM sys.dm_exec_connections WHERE session_id = @@SPID"
        assert value(connection, f"SELECT auth_scheme {mine}") == "KERBEROS"


def test_without_a_ticket_kinit_is_next(server: SqlServer) -> None:
    """There is nothing to log in with."""
    assert "kinit" in _refused(server)
