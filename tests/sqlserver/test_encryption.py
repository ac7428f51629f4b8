"""Nobody but the server that was meant gets a login: a lying server sees none, with either driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.sqlserver.authority import Authority
from tests.sqlserver.hostile import NOT_SUPPORTED, OFF, Hostile, Seen, hostile_server
from tests.sqlserver.support import driver_of, server_of
from tests.support.lab import LabHandle
from vnuma.errors import CertificateRejected, LoginRefused, VnumaError
from vnuma.sqlserver.client.connect import Encrypt, SqlServer, connect
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.client.query import value

DRIVERS: tuple[DriverKind, ...] = ("freetds", "msodbcsql18")
PASSWORD = "never on the wire"

Lie = Literal["downgrade", "other CA", "other name", "expired"]

LIES: dict[Lie, str] = {
    "downgrade": "refuses to encrypt",
    "other CA": r"did not sign|unable to get local issuer",
    "other name": r"for elsewhere\.example|does not match host name",
    "expired": "expired",
}
"""What a server pretends, and what is said of it."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The CA that the inventory names."""
    return Authority(tmp_path_factory.mktemp("ca"))


def _server(kind: DriverKind, port: int, ca_file: Path, encrypt: Encrypt = "mandatory") -> SqlServer:
    driver = driver_of(kind)
    return SqlServer("localhost", port, "sa", PASSWORD, driver, encrypt, ca_file=str(ca_file))


def _hostile(lie: Lie, authority: Authority, folder: Path) -> Hostile:
    match lie:
        case "downgrade":
            return Hostile(authority.certificate(), encryption=NOT_SUPPORTED)
        case "other CA":
            return Hostile(Authority(folder, "Other-CA").certificate())
        case "other name":
            return Hostile(authority.certificate("elsewhere.example"))
        case "expired":
            return Hostile(authority.certificate(expired=True))


@pytest.mark.parametrize(
    ("lie", "kind", "encrypt"),
    [
        *((lie, kind, "mandatory") for lie in LIES for kind in DRIVERS),
        *((lie, "msodbcsql18", "strict") for lie in LIES if lie != "downgrade"),  # TDS 8 begins with TLS
    ],
)
def test_a_lying_server_gets_no_login(
    lie: Lie, kind: DriverKind, encrypt: Encrypt, authority: Authority, tmp_path: Path
) -> None:
    """It is refused before LOGIN7 is sent, naming the server and what is wrong."""
    with hostile_server(_hostile(lie, authority, tmp_path)) as seen:
        server = _server(kind, seen.port, authority.ca_file, encrypt)
        with pytest.raises(CertificateRejected, match=LIES[lie]) as caught, connect(server):
            pass

    assert seen.logins == seen.clear_logins == []
    assert server.where in caught.value.what
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("kind", DRIVERS)
@pytest.mark.parametrize(("encrypt", "session"), [("mandatory", {}), ("no", {"encryption": OFF})])
def test_the_right_server_gets_the_login_inside_tls(
    kind: DriverKind, encrypt: Encrypt, session: dict[str, Any], authority: Authority
) -> None:
    """The hostile server is refused for its lie, not for being unlike SQL Server.

    With `encrypt: no` what goes in the clear is the session, where the server can encrypt the login.
    """
    seen = _refused_by(Hostile(authority.certificate(), **session), kind, authority, encrypt)

    assert len(seen.logins) == 1
    assert seen.clear_logins == []


def _refused_by(
    behaviour: Hostile, kind: DriverKind, authority: Authority, encrypt: Encrypt = "mandatory"
) -> Seen:
    """Log in to a server that refuses every login after it has received it."""
    with hostile_server(behaviour) as seen:
        server = _server(kind, seen.port, authority.ca_file, encrypt)
        with pytest.raises(LoginRefused), connect(server):
            pass
    return seen


@pytest.mark.parametrize("kind", DRIVERS)
def test_only_encrypt_no_sends_a_login_in_the_clear(kind: DriverKind, authority: Authority) -> None:
    """A server without encryption is logged in to where the inventory says so by name."""
    seen = _refused_by(Hostile(encryption=NOT_SUPPORTED), kind, authority, "no")

    assert len(seen.clear_logins) == 1


@pytest.mark.parametrize("kind", DRIVERS)
@pytest.mark.parametrize(
    ("lie", "error", "logins"), [("other CA", LoginRefused, 1), ("downgrade", CertificateRejected, 0)]
)
def test_any_certificate_is_taken_where_that_is_asked_for(
    kind: DriverKind, lie: Lie, error: type[VnumaError], logins: int, authority: Authority, tmp_path: Path
) -> None:
    """`trust_server_certificate` still demands encryption; a refusal is not called unreachable."""
    with hostile_server(_hostile(lie, authority, tmp_path)) as seen:
        server = replace(_server(kind, seen.port, authority.ca_file), trust_server_certificate=True)
        with pytest.raises(error), connect(server):
            pass

    assert (len(seen.logins), seen.clear_logins) == (logins, [])


@pytest.mark.parametrize("kind", DRIVERS)
def test_two_servers_of_two_cas_are_both_verified(
    kind: DriverKind, authority: Authority, tmp_path: Path
) -> None:
    """One process logs in to both, each with the CA file that its inventory entry names."""
    other = Authority(tmp_path, "Second-CA")
    for ca in (authority, other, authority):
        assert len(_refused_by(Hostile(ca.certificate()), kind, ca).logins) == 1


@pytest.mark.parametrize(
    ("kind", "encrypt", "option"),
    [
        ("freetds", "mandatory", "TRUE"),
        ("freetds", "no", "FALSE"),
        ("msodbcsql18", "mandatory", "TRUE"),
        ("msodbcsql18", "strict", "TRUE"),
        ("msodbcsql18", "no", "FALSE"),
    ],
)
def test_the_session_is_encrypted_as_asked(
    shared_lab: LabHandle, kind: DriverKind, encrypt: Encrypt, option: str
) -> None:
    """SQL Server itself tells whether this session is encrypted."""
    shared_lab.wait_for("sql_listening")
    asked = "SELECT encrypt_option FROM sys.dm_exec_connections WHERE session_id = @@SPID"

    with connect(server_of(shared_lab, driver=driver_of(kind), encrypt=encrypt)) as connection:
        assert value(connection, asked) == option
