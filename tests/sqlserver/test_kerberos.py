"""Logins by Kerberos: a real KDC, both drivers, and a server that checks tickets with its keytab."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sqlserver.support import driver_of, server_of
from tests.support import kdc as private_kdc
from tests.support.kdc import Kdc
from tests.support.lab import LabHandle
from vnuma.engine.access.target import VmTarget
from vnuma.engine.doctor.diagnose_vm import tickets
from vnuma.errors import EnvironmentProblem, LoginRefused, SqlUnreachable
from vnuma.logins import Logins
from vnuma.sqlserver.client import gss
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.client.tickets import Keytab, renewing

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


def target(**sql: Any) -> VmTarget:
    """A VM of an inventory, whose SQL Server is logged in to by Kerberos."""
    access = {"host": "localhost", "user": "u", "password": {"env": "X"}}
    login = {"host": "localhost", "kerberos": True} | sql
    return VmTarget.model_validate({"name": "sql16", "vm": "sql16", "vcenter": access, "sql": login})


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


def _told(server: SqlServer) -> str:
    """The same, whatever is wrong outside the study."""
    with pytest.raises(EnvironmentProblem) as caught, connect(server):
        pass
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

    assert f"Windows account VNUMA\\{STRANGER} has no login" in told
    assert f"CREATE LOGIN [VNUMA\\{STRANGER}] FROM WINDOWS" in told
    assert "password" not in told


def test_a_refused_ticket_locks_no_account(kdc: Kdc, server: SqlServer) -> None:
    """No password was tried: `vnuma doctor`, whose first refusal is the last, says nothing of a lock."""
    kdc.kinit(kdc.folder / "keytab", STRANGER)
    logins = Logins(None)
    logins.once = True

    told = [_refused(replace(server, logins=logins)) for _ in range(2)]

    assert "has no login" in told[0]
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
    assert "setspn" in told


def test_an_expired_ticket_is_one_sentence(kdc: Kdc, server: SqlServer) -> None:
    """A cache whose only ticket ended long ago."""
    kdc.expired(kdc.folder / "keytab", ACCOUNT)

    told = _refused(server)

    assert "the ticket has expired" in told
    assert "kinit" in told


def test_an_unreachable_kdc_is_named(kdc: Kdc, server: SqlServer) -> None:
    """The ticket is good, but nobody gives one for the service."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)
    with kdc.silent():
        told = _refused(server)

    assert "no KDC of the realm can be reached" in told
    assert "krb5.conf" in told


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
    assert f"setspn -Q {spn}" in told


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


def test_a_named_keytab_logs_in_its_account(kdc: Kdc, server: SqlServer) -> None:
    """Whatever ticket the user has, and though the file holds other accounts' keys before it."""
    file = kdc.folder / "both.keytab"
    for principal in (STRANGER, ACCOUNT):
        kdc.admin(f"ktadd -norandkey -k {file} {principal}")
    kdc.kinit(kdc.folder / "keytab", STRANGER)

    with connect(replace(server, keytab=Keytab(str(file), ACCOUNT))) as connection:
        assert value(connection, "SELECT 7") == 7
    assert "CREATE LOGIN" in _refused(replace(server, keytab=Keytab(str(file))))
    assert "CREATE LOGIN" in _refused(server)


def test_a_named_keytab_s_ticket_serves_many_logins(kdc: Kdc, server: SqlServer) -> None:
    """The KDC is asked once, and no cache of the user's is written."""
    named = replace(server, keytab=Keytab(str(kdc.keytab("svc-long", name="long.keytab"))))

    said = [_refused(named)]
    asked = kdc.first_tickets("svc-long")  # on a busy machine a client may repeat its request
    said += [_refused(named) for _ in range(2)]

    assert all("CREATE LOGIN" in words for words in said)
    assert kdc.first_tickets("svc-long") == asked
    assert not (kdc.folder / "cache").exists()


def test_a_named_keytab_s_ticket_is_replaced_before_it_expires(kdc: Kdc, server: SqlServer) -> None:
    """At half of its time: a study is longer than a ticket."""
    file = kdc.keytab("svc-short", name="short.keytab")
    kdc.admin('modprinc -maxlife "4 seconds" svc-short')
    short, began = replace(server, keytab=Keytab(str(file))), time.time()

    said = [_refused(short)]
    first = kdc.first_tickets("svc-short")
    while time.time() < began + 5:
        time.sleep(0.02)
    said.append(_refused(short))

    assert all("CREATE LOGIN" in words for words in said)
    assert kdc.first_tickets("svc-short") > first


@pytest.mark.parametrize(
    ("file", "principal", "told"),
    [
        ("none.keytab", "", ("none.keytab cannot be read", "docs/sign-in.md")),
        ("keytab", "svc-else", ("has no key of svc-else", "klist -k")),
    ],
)
def test_a_named_keytab_that_gives_no_ticket_is_reported(
    kdc: Kdc, server: SqlServer, file: str, principal: str, told: tuple[str, str]
) -> None:
    """With the file, and what to check."""
    keytab = Keytab(str(kdc.folder / file), principal)

    with pytest.raises(EnvironmentProblem) as caught, connect(replace(server, keytab=keytab)):
        pass

    assert told[0] in caught.value.what
    assert told[1] in str(caught.value.fix)


def test_a_keytab_with_an_old_key_is_tried_three_times(kdc: Kdc, server: SqlServer) -> None:
    """A key is a password: the domain locks its account after some more."""
    file = kdc.keytab("svc-old", name="old.keytab")
    kdc.admin("cpw -randkey svc-old")
    tried = replace(server, keytab=Keytab(str(file)), logins=Logins(None))

    told = [_refused(tried) for _ in range(4)]

    assert all("older than the account's password" in words for words in told)
    assert ["account is not locked" in words for words in told] == [False, False, True, True]


def test_a_named_keytab_of_a_locked_account_has_the_kdc_s_reason(kdc: Kdc, server: SqlServer) -> None:
    """Its ticket would be in memory, and no service is asked for yet: klist, kvno and setspn show nothing."""
    file = kdc.keytab("svc-locked", name="locked.keytab")
    kdc.admin("modprinc -allow_tix svc-locked")

    told = _refused(replace(server, keytab=Keytab(str(file))))

    assert "revoked" in told
    assert f"kinit -k -t {file}" in told
    assert not [word for word in ("there is no ticket", "kvno", "setspn", "kdestroy") if word in told]


def test_a_named_keytab_without_a_kdc_is_not_the_account_s_fault(kdc: Kdc, server: SqlServer) -> None:
    """No key was tried, so nothing counts towards a lock-out."""
    file = kdc.keytab("svc-alone", name="alone.keytab")
    tried = replace(server, keytab=Keytab(str(file)), logins=Logins(None))

    with kdc.silent():
        for _ in range(4):
            with pytest.raises(SqlUnreachable, match="no KDC answers") as caught, connect(tried):
                pass

    assert str(file) in caught.value.what
    assert "krb5.conf" in str(caught.value.fix)


def test_a_silent_kdc_is_named_and_holds_up_its_own_keytab_alone(kdc: Kdc, server: SqlServer) -> None:
    """SQL Server is up: a login by another keytab works meanwhile, and the guest is not suspected."""
    file = kdc.keytab("svc-mute@MUTE.TEST", name="mute.keytab")
    waits = replace(server, keytab=Keytab(str(file), "svc-mute@MUTE.TEST"))
    works = replace(server, keytab=Keytab(str(kdc.keytab("svc-else", name="else.keytab"))))

    with kdc.mute("MUTE.TEST") as mute, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_told, waits)
        mute.settimeout(30)
        with mute.accept()[0]:
            assert "CREATE LOGIN" in _refused(works)
            told = waiting.result()

    assert "no KDC answers" in told
    assert str(file) in told
    assert "port 88" in told
    assert "guest" not in told


def test_a_keytab_without_the_library_names_its_package(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without MIT's Kerberos has no kinit either."""

    def none(name: str) -> ctypes.CDLL:
        raise OSError(name)

    gss._library.cache_clear()
    with monkeypatch.context() as lacking:
        lacking.setattr(ctypes, "CDLL", none)
        try:
            told = _told(replace(server, keytab=Keytab(str(kdc.folder / "keytab"), "svc-unasked")))
        finally:
            gss._library.cache_clear()

    assert "libgssapi_krb5" in told
    assert "apt install" in told
    assert "there is no ticket" not in told


def test_a_renewable_ticket_of_the_user_outlasts_its_time(kdc: Kdc, server: SqlServer) -> None:
    """While a run works it is renewed at half its time."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT, "-l", "8s", "-r", "1h")
    began = time.time()

    with renewing():
        while time.time() < began + 12:
            time.sleep(0.05)
        with connect(server) as connection:
            assert value(connection, "SELECT 7") == 7


@pytest.mark.parametrize(
    ("options", "state", "words"),
    [
        (("-l", "1h"), "warn", ("lasts 60 min", "not renewable")),
        (("-l", "1h", "-r", "6h"), "warn", ("lasts 60 min", "renews it for 6 h 0 min")),
        (("-l", "1h", "-r", "3d"), "ok", ("lasts 60 min", "renews it for 72 h 0 min")),
    ],
)
def test_the_doctor_shows_how_long_the_user_s_ticket_serves(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], state: str, words: tuple[str, ...]
) -> None:
    """One that a run can renew serves longer than it lasts; less than a night is a warning."""
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    kdc.kinit(kdc.folder / "keytab", ACCOUNT, *options)

    (told,) = tickets([target()])

    assert (told.state, told.subject) == (state, "ticket")
    assert all(part in told.what for part in words), told.what
    assert ("fix: kinit" in " ".join(told.more)) == (state == "warn")


def test_the_doctor_does_not_guess_when_klist_fails(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ticket that may be renewable is not said not to be."""
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    kdc.kinit(kdc.folder / "keytab", ACCOUNT, "-l", "1h", "-r", "3d")
    for program in ("kinit", "klist"):
        (tmp_path / program).write_bytes(b"\0")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    (told,) = tickets([target()])

    assert told.state == "warn"
    assert "klist" in told.what
    assert "not renewable" not in told.what


def test_the_doctor_says_that_there_is_no_ticket(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keytab needs none; a login with a password is not spoken of."""
    for name, text in kdc.environment.items():
        monkeypatch.setenv(name, text)
    (kdc.folder / "cache").unlink(missing_ok=True)

    found = tickets(
        [target(), target(keytab="/etc/a.keytab"), target(kerberos=False, user="u", password={"env": "X"})]
    )

    assert [(one.state, "no valid one" in one.what) for one in found] == [("warn", True), ("ok", False)]


def test_a_keytab_without_the_ticket_s_account_is_named(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticket was somebody else's: the library asks for no other account's while the cache is there."""
    kdc.expired(kdc.folder / "keytab", ACCOUNT)
    other = kdc.keytab("svc-other", name="other.keytab")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(other))

    told = _refused(server)

    assert f"{other} has no key of its account" in told
    assert f"klist -k {other}" in told
    assert "kdestroy" in told


def test_a_keytab_that_is_not_there_is_named(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ticket and file there is nothing to log in with, and kinit is not what was meant."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.folder / "none.keytab"))

    told = _refused(server)

    assert f"klist -k {kdc.folder / 'none.keytab'}" in told


def test_an_account_that_the_kdc_does_not_know_is_named(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keytab was made for another account, or another spelling of it."""
    file = kdc.keytab("svc-gone", name="gone.keytab")
    kdc.admin("delprinc -force svc-gone")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(file))

    told = _refused(server)

    assert "svc-gone@VNUMA.TEST" in told
    assert f"klist -k {file}" in told


def test_a_keytab_with_an_old_key_is_named(
    kdc: Kdc, server: SqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account's password has changed since the keytab was made."""
    file = kdc.keytab("svc-changed", name="changed.keytab")
    kdc.admin("cpw -randkey svc-changed")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(file))

    told = _refused(server)

    assert "older than the account's password" in told
    assert str(file) in told


def test_clocks_that_differ_are_said(kdc: Kdc, server: SqlServer) -> None:
    """The KDC refuses what is dated an hour from now."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)
    kdc.clock_ahead(3600)

    told = _refused(server)

    assert "clock" in told
    assert "timedatectl" in told


def test_an_unknown_realm_is_named(kdc: Kdc, server: SqlServer) -> None:
    """The default realm is not where the ticket is from, and nobody knows its KDC."""
    kdc.kinit(kdc.folder / "keytab", ACCOUNT)
    with kdc.default_realm("UNKNOWN.TEST"):
        told = _refused(server)

    assert "realm" in told
    assert "krb5.conf" in told
