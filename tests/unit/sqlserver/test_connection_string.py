"""Connection strings: escaped, per driver, and never shown."""

from __future__ import annotations

import dataclasses
from configparser import ConfigParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vnuma.errors import DriverMissing, EnvironmentProblem, InputError
from vnuma.sqlserver.client.connect import SqlServer, connection_string, driver_files
from vnuma.sqlserver.client.driver import Driver

FREETDS = Driver("FreeTDS", "freetds", "1.3.17")
MICROSOFT_18 = Driver("ODBC Driver 18 for SQL Server", "msodbcsql18")
MICROSOFT_17 = Driver("ODBC Driver 17 for SQL Server", "msodbcsql17")


def _server(driver: Driver = FREETDS, **changes: object) -> SqlServer:
    server = SqlServer("sql16.example", 1433, "sa", "secret", driver)
    return dataclasses.replace(server, **changes)  # type: ignore[arg-type]


def _read(text: str) -> dict[str, str]:
    """Read a connection string as the ODBC specification says: `}}` is a brace, `}` ends the value."""
    found, rest = {}, text
    while rest:
        name, rest = rest.split("={", 1)
        value = ""
        while True:
            part, rest = rest.split("}", 1)
            value += part
            if not rest.startswith("}"):
                break
            value, rest = value + "}", rest[1:]
        found[name] = value
        rest = rest.removeprefix(";")
    return found


def _read_freetds(text: str) -> dict[str, str]:
    """Read a connection string as FreeTDS 1.3 does: a value in braces ends at the first `};`."""
    found, rest = {}, text
    while rest:
        name, rest = rest.split("={", 1)
        found[name], rest = rest.split("};", 1)
    return found


@given(st.text(min_size=1), st.sampled_from([MICROSOFT_17, MICROSOFT_18]))
@example("semi;PWD=evil;", MICROSOFT_18)
@example("}", MICROSOFT_18)
def test_no_password_can_break_out_of_its_value(password: str, driver: Driver) -> None:
    """Braces, semicolons and equals signs in a password stay part of the password."""
    fields = _read(connection_string(_server(driver, password=password), "master"))

    assert fields["PWD"] == password
    assert fields["DATABASE"] == "master"


@given(st.text("};={ab", min_size=1))
@example("a};b")
def test_freetds_gets_the_password_or_a_refusal(password: str) -> None:
    """FreeTDS knows no doubled braces; what it cannot take is refused, not changed."""
    if "};" in password:
        with pytest.raises(InputError):
            connection_string(_server(FREETDS, password=password), "master")
        return
    fields = _read_freetds(connection_string(_server(FREETDS, password=password), "master"))

    assert fields["PWD"] == password
    assert fields["DATABASE"] == "master"


def test_the_password_is_in_no_repr() -> None:
    """A server may be logged or shown in a traceback."""
    assert "secret" not in repr(_server())


@pytest.mark.parametrize(
    ("driver", "encrypt", "word"),
    [
        (MICROSOFT_18, "mandatory", "yes"),
        (MICROSOFT_18, "strict", "strict"),
        (MICROSOFT_18, "no", "no"),
        (MICROSOFT_17, "mandatory", "yes"),
        (MICROSOFT_17, "no", "no"),
    ],
)
def test_encryption_is_said_in_microsofts_words(driver: Driver, encrypt: str, word: str) -> None:
    """Version 17 has two words, which both of its successors have too."""
    fields = _read(connection_string(_server(driver, encrypt=encrypt), "master"))

    assert (fields["Encrypt"], fields["TrustServerCertificate"]) == (word, "no")


@pytest.mark.parametrize(("encrypt", "word"), [("mandatory", "require"), ("no", "request")])
def test_freetds_finds_its_server_in_a_section_that_says_encryption(encrypt: str, word: str) -> None:
    """The connection string names the section and no address: without the section there is no login."""
    server = _server(FREETDS, encrypt=encrypt)

    fields = _read_freetds(connection_string(server, "master"))
    _, section = driver_files(server)

    assert not {"SERVER", "PORT"} & set(fields)
    parser = ConfigParser()
    parser.read_string(section)
    written = parser[fields["Servername"]]
    assert (written["host"], written["encryption"]) == ("sql16.example", word)
    assert written.get("ca file") == ("system" if encrypt == "mandatory" else None)


@pytest.mark.parametrize("version", ["0.91", ""])
def test_a_freetds_that_cannot_verify_is_refused(version: str) -> None:
    """It would ignore the CA, and log in to anybody."""
    with pytest.raises(DriverMissing):
        driver_files(_server(Driver("FreeTDS", "freetds", version)))


def test_a_host_cannot_break_out_of_its_section() -> None:
    """What would end the line in freetds.conf is not a host."""
    with pytest.raises(InputError):
        driver_files(_server(FREETDS, host="sql16\n\tencryption = off"))


def test_a_ca_file_without_a_certificate_is_refused(tmp_path: Path) -> None:
    """Before anybody connects."""
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing", encoding="ascii")

    with pytest.raises(EnvironmentProblem):
        driver_files(_server(FREETDS, ca_file=str(empty)))


@pytest.mark.parametrize("driver", [FREETDS, MICROSOFT_17])
def test_strict_encryption_is_never_weakened_silently(driver: Driver) -> None:
    """A driver that cannot do it is refused."""
    with pytest.raises(DriverMissing):
        connection_string(_server(driver, encrypt="strict"), "master")


def test_kerberos_sends_neither_user_nor_password() -> None:
    """The ticket logs in."""
    fields = _read(connection_string(_server(MICROSOFT_18, kerberos=True), "master"))

    assert fields["Trusted_Connection"] == "yes"
    assert not {"UID", "PWD"} & set(fields)


@pytest.mark.parametrize("driver", [FREETDS, MICROSOFT_18])
def test_kerberos_asks_for_the_service_that_the_inventory_names(driver: Driver) -> None:
    """Drivers left alone ask DNS for another name of the host, each in its own way."""
    server = _server(driver, kerberos=True)

    assert _read(connection_string(server, "master"))["ServerSPN"] == f"MSSQLSvc/{server.host}:{server.port}"


def test_microsofts_driver_may_not_reconnect_by_itself() -> None:
    """A connection replaced in silence would have lost SET STATISTICS TIME."""
    assert _read(connection_string(_server(MICROSOFT_18), "master"))["ConnectRetryCount"] == "0"
