"""Logins by Kerberos: a real KDC, both drivers, and a server that checks tickets with its keytab."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sqlserver.support import driver_of, server_of
from tests.support import kdc as private_kdc
from tests.support.kdc import Kdc
from tests.support.lab import LabHandle
from vnuma.engine.access.target import Target
from vnuma.engine.doctor.diagnose_vm import tickets
from vnuma.errors import LoginRefused
from vnuma.logins import Logins
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.client.query import value

ACCOUNT = "svc-vnuma"
STRANGER = "svc-stranger"
LOGINS = {rf"VNUMA\{ACCOUNT}": ["CONTROL SERVER"]}


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm with the study's account, and one that has no login."""
    running = private_kdc.of_a_test(tmp_path_factory.mktemp("kdc"))
    running.keytab(ACCOUNT, STRANGER)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def kerberos_lab(kdc: Kdc, lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """A lab whose SQL Server has an SPN and its keytab."""
    keytab = kdc.folder / "sql.keytab"
    folder = tmp_path_factory.mktemp("lab")
    scenario = folder / "scenario.yml"
    vm = {"name": "sql16", "sql": {"logins": LOGINS}}
    scenario.write_text(yaml.safe_dump({"name": "paper", "vms": [vm]}), encoding="utf-8")
    running = LabHandle(lab_binary, folder, ["--scenario", str(scenario), "--keytab", str(keytab)])
    kdc.keytab(f"MSSQLSvc/localhost:{running.vms['sql16'].port}", name=keytab.name)
    running.wait_for("sql_listening")
    yield running
    running.stop()


def target(**sql: Any) -> Target:
    """A VM of an inventory, whose SQL Server is logged in to by Kerberos."""
    access = {"host": "localhost", "user": "u", "password": {"env": "X"}}
    login = {"host": "localhost", "kerberos": True} | sql
    return Target.model_validate({"name": "sql16", "vm": "sql16", "vcenter": access, "sql": login})


@pytest.fixture(params=["freetds", "msodbcsql18"])
def server(
    request: pytest.FixtureRequest, kdc: Kdc, kerberos_lab: LabHandle, monkeypatch: pytest.MonkeyPatch
) -> SqlServer:
    """That SQL Server by each driver, and no ticket."""
    kind: DriverKind = request.param
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    (kdc.folder / "cache").unlink(missing_ok=True)
    driver = driver_of(kind)
    return server_of(kerberos_lab, driver=driver, host="localhost", user="", password="", kerberos=True)


def _refused(server: SqlServer) -> str:
    """What is said of a refused login, with the next step, in one line each."""
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


def test_an_account_without_a_login_is_told_the_statement(kdc: Kdc, server: SqlServer) -> None:
    """The ticket is good; nobody has made a login of it in SQL Server."""
    kdc.kinit(kdc.folder / "keytab", STRANGER)

    told = _refused(server)

    assert f"CREATE LOGIN [VNUMA\\{STRANGER}] FROM WINDOWS" in told


def test_a_refused_ticket_locks_no_account(kdc: Kdc, server: SqlServer) -> None:
    """No password was tried: `vnuma doctor`, whose first refusal is the last, says nothing of a lock."""
    kdc.kinit(kdc.folder / "keytab", STRANGER)
    logins = Logins(None)
    logins.once = True

    told = [_refused(replace(server, logins=logins)) for _ in range(2)]

    assert "locked" not in told[0]
    assert told[1] == told[0]


def test_without_a_ticket_kinit_is_next(server: SqlServer) -> None:
    """There is nothing to log in with."""
    assert "kinit" in _refused(server)


def test_a_server_without_an_spn_is_refused(kdc: Kdc, server: SqlServer) -> None:
    """Under another name the server has none."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)

    told = _refused(replace(server, host="127.0.0.1"))

    assert f"MSSQLSvc/127.0.0.1:{server.port}" in told


def test_an_expired_ticket_is_one_sentence(kdc: Kdc, server: SqlServer) -> None:
    """A cache whose only ticket ended long ago."""
    kdc.expired(kdc.folder / "keytab", ACCOUNT)

    told = _refused(server)

    assert "the ticket has expired" in told


def test_a_server_with_another_key_refuses_the_ticket(
    kdc: Kdc, kerberos_lab: LabHandle, server: SqlServer
) -> None:
    """The account's password has changed since: the ticket's key has a version that the server lacks."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)
    spn = f"MSSQLSvc/localhost:{kerberos_lab.vms['sql16'].port}"
    kdc.admin(f"cpw -randkey {spn}")
    try:
        told = _refused(server)
    finally:
        kdc.admin(f"ktadd -k {kdc.folder / 'sql.keytab'} {spn}")

    assert f"refuses the Kerberos ticket for {spn}" in told


def test_a_keytab_gets_the_first_ticket(kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without kinit: the library asks the KDC for it."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.folder / "keytab"))

    with connect(server) as connection:
        assert value(connection, "SELECT 7") == 7


def test_a_keytab_replaces_a_ticket_that_has_expired(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night is longer than a ticket: nobody needs to call kinit in between."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.folder / "keytab"))
    kdc.admin(f'modprinc -maxlife "1 second" {ACCOUNT}')
    try:
        last = int(time.time()) + 2
        with connect(server):
            pass
        first = kdc.run("klist")
        while int(time.time()) <= last:
            time.sleep(0.02)
    finally:
        kdc.admin(f'modprinc -maxlife "10 hours" {ACCOUNT}')

    with connect(server):
        assert kdc.run("klist") != first


@pytest.mark.parametrize("trouble", ["KDC", "clock", "realm"])
def test_what_the_kdc_refuses_leads_to_kvno(kdc: Kdc, server: SqlServer, trouble: str) -> None:
    """A KDC that is away, clocks that differ, an unknown realm: the program that says which is next."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)
    if trouble == "clock":
        kdc.clock_ahead(3600)
    with {"KDC": kdc.silent, "realm": lambda: kdc.default_realm("UNKNOWN.TEST")}.get(trouble, nullcontext)():
        told = _refused(server)

    assert f"kvno MSSQLSvc/localhost:{server.port}" in told


@pytest.mark.parametrize(("lasts", "state"), [("1h", "warn"), ("9h", "warn"), ("13h", "ok")])
def test_the_doctor_shows_how_long_the_ticket_lasts(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, lasts: str, state: str
) -> None:
    """Less than a night is a warning."""
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    for principal in (ACCOUNT, "krbtgt/VNUMA.TEST"):
        kdc.admin(f'modprinc -maxlife "24 hours" {principal}')
    kdc.kinit(kdc.folder / "keytab", ACCOUNT, "-l", lasts)

    (told,) = tickets([target()])

    assert (told.state, told.subject) == (state, "ticket")


def test_the_doctor_says_that_there_is_no_ticket(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login with a password needs none, and the library gets one by the environment's keytab."""
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    (kdc.folder / "cache").unlink(missing_ok=True)

    assert [one.state for one in tickets([target(), target()])] == ["warn"]
    assert list(tickets([target(kerberos=False, user="u", password={"env": "X"})])) == []
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "/etc/a.keytab")
    assert [one.state for one in tickets([target()])] == ["ok"]
