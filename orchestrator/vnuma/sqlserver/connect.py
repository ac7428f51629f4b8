"""Connecting to SQL Server: the connection string, written once, and errors translated once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from vnuma.errors import DriverMissing, InputError, LoginRefused, VnumaError
from vnuma.logins import Logins
from vnuma.sqlserver.deadline import STATEMENT_TIMEOUT_S, known, socket_numbers
from vnuma.sqlserver.driver import Driver
from vnuma.sqlserver.failures import ServerError, counts_against_account, translate
from vnuma.sqlserver.odbc import pyodbc

Encrypt = Literal["optional", "strict", "no"]

APPLICATION = "vnuma"

MOST_REFUSALS = 3
"""Logins that are refused in a row before the account is left alone: domains lock it after three to ten."""

__all__ = ["APPLICATION", "Encrypt", "ServerError", "SqlServer", "connect", "connection_string", "translate"]


@dataclass(frozen=True)
class SqlServer:
    """How to reach one SQL Server.

    `encrypt`: `optional` encrypts at least the login where the server offers it, `strict` demands
    TDS 8 with a trusted certificate (msodbcsql18 only), `no` asks for none. With `kerberos` the
    caller's ticket logs in, and user and password are not used.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    driver: Driver
    encrypt: Encrypt = "optional"
    trust_server_certificate: bool = False
    kerberos: bool = False
    node_ports: tuple[int, ...] = ()
    """Further ports of this server that may be mapped to NUMA nodes; empty: a study names them."""
    logins: Logins | None = field(default=None, repr=False, compare=False)
    """Where the run's processes count refused logins; None: they are not counted."""

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def account(self) -> str:
        """Server and login, as refusals are counted."""
        return f"SQL Server {self.where} {self.user}"


@contextmanager
def connect(
    server: SqlServer,
    database: str = "master",
    login_timeout_s: float = 5,
    statement_timeout_s: float = STATEMENT_TIMEOUT_S,
) -> Iterator[pyodbc.Connection]:
    """A connection for the duration of a `with`, closed at its end.

    Autocommit is on, as timing needs it: a transaction would add requests of its own. An account that was
    refused MOST_REFUSALS times in a row is not tried again in this run.

    Raises SqlUnreachable, LoginRefused, CertificateRejected, DriverMissing or ServerError, also for what the
    driver raises inside the `with`.
    """
    connection: pyodbc.Connection | None = None
    if server.logins:
        server.logins.require_open(server.account)
    before = socket_numbers()
    try:
        connection = pyodbc.connect(
            connection_string(server, database), autocommit=True, timeout=max(1, round(login_timeout_s))
        )
        if server.logins:
            server.logins.accepted(server.account)
        with known(connection, socket_numbers() - before, statement_timeout_s):
            yield connection
    except pyodbc.Error as error:
        translated = translate(error, server.where)
        if connection is None and counts_against_account(error):
            translated = _counted(server, translated)
        raise translated from error
    finally:
        if connection is not None:
            with suppress(pyodbc.Error):  # the server may be gone already; then there is nothing to close
                connection.close()


def _counted(server: SqlServer, error: VnumaError) -> VnumaError:
    """A refused login, or AccountRefused when it was the last that this run tries."""
    if server.logins is None or not isinstance(error, LoginRefused):
        return error
    with server.logins.alone(server.account):
        return server.logins.refused(server.account, error, MOST_REFUSALS)


def connection_string(server: SqlServer, database: str) -> str:
    """The ODBC connection string. It holds the password: never log it."""
    options = _freetds(server) if server.driver.kind == "freetds" else _microsoft(server)
    options |= {"DATABASE": database, "APP": APPLICATION}
    options |= (
        {"Trusted_Connection": "yes"} if server.kerberos else {"UID": server.user, "PWD": server.password}
    )
    braced = _braced_freetds if server.driver.kind == "freetds" else _braced
    pairs = {"DRIVER": server.driver.name, **options}.items()
    # FreeTDS takes the last value's closing brace for part of it, unless a semicolon follows.
    return "".join(f"{name}={braced(value)};" for name, value in pairs)


def _microsoft(server: SqlServer) -> dict[str, str]:
    if server.encrypt == "strict" and server.driver.kind != "msodbcsql18":
        raise _no_strict(server.driver)
    if server.driver.kind == "msodbcsql18":
        encrypt = {"optional": "optional", "strict": "strict", "no": "no"}[server.encrypt]
    else:
        encrypt = "no"
    return {
        "SERVER": f"tcp:{server.host},{server.port}",
        "Encrypt": encrypt,
        "TrustServerCertificate": "yes" if server.trust_server_certificate else "no",
        # A silent reconnection would lose SET STATISTICS TIME and with it the measurement.
        "ConnectRetryCount": "0",
    }


def _freetds(server: SqlServer) -> dict[str, str]:
    if server.encrypt == "strict":
        raise _no_strict(server.driver)
    return {
        "SERVER": server.host,
        "PORT": str(server.port),
        "TDS_Version": "7.4",
        "ClientCharset": "UTF-8",
        "Encryption": "off" if server.encrypt == "no" else "request",
    }


def _no_strict(driver: Driver) -> DriverMissing:
    return DriverMissing(
        f"encrypt: strict needs msodbcsql18, but the driver found is {driver}.",
        fix="Install msodbcsql18, or set encrypt: optional.",
    )


def _braced(value: str) -> str:
    """A value in braces, as ODBC defines it: only a closing brace means anything, and it is doubled."""
    return "{" + value.replace("}", "}}") + "}"


def _braced_freetds(value: str) -> str:
    """A value in braces, as FreeTDS reads it: up to the first `};`, and nothing can be doubled."""
    if "};" in value:
        raise InputError(
            "FreeTDS cannot pass on a name or password that contains the characters };",
            fix="Choose another, or install msodbcsql18.",
        )
    return "{" + value + "}"
