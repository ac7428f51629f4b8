"""Which server answers at a SQL Server's address, without changing anything."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from vnuma.domain.vm.endpoint import ServerSide, plain
from vnuma.errors import CertificateRejected, LoginRefused, PrivilegeMissing, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance import ready

# For its own connection a session needs no privilege; NULL without TCP.
# https://learn.microsoft.com/sql/t-sql/functions/connectionproperty-transact-sql
_ADDRESS = "SELECT CAST(CONNECTIONPROPERTY(N'local_net_address') AS nvarchar(48))"
_CLOCK = "SELECT SYSUTCDATETIME()"
_PROBE_S = 3.0
_LOGIN_S = 5.0


@dataclass(frozen=True)
class Answer:
    """Something answers where nothing should; the text says what."""

    what: str


def read_server_side(connection: pyodbc.Connection) -> ServerSide:
    """The address that this connection reached, and SQL Server's uptime by its own tick count."""
    found = value(connection, _ADDRESS)
    address = None
    with suppress(ValueError):  # a name such as <local machine> is not an address
        address = plain(str(found)) if found else None
    uptime: float | None = None
    with suppress(PrivilegeMissing, SqlFailed):
        uptime = ready.read_ticks(connection).uptime_s
    return ServerSide(address, uptime, time.monotonic())


def read_clock(connection: pyodbc.Connection) -> datetime:
    """The guest's own time."""
    clock: datetime = value(connection, _CLOCK)
    return clock.replace(tzinfo=UTC)


def answers(server: SqlServer) -> Answer | None:
    """What answers there like a SQL Server; None for silence.

    A proxy may accept a connection for a server that is gone, so a login follows. Raises DriverMissing.
    """
    if not server.instance:  # only SQL Server Browser knows a named instance's port
        try:
            with socket.create_connection((server.host, server.port), timeout=_PROBE_S):
                pass
        except OSError:
            return None
    try:
        with connect(server, login_timeout_s=_LOGIN_S, statement_timeout_s=_LOGIN_S) as connection:
            read_server_side(connection)
    except (SqlUnreachable, SqlFailed):
        return None
    except CertificateRejected:
        return Answer("a server with another certificate answers")
    except LoginRefused:
        return Answer("a SQL Server answers and refuses the login")
    return Answer("a SQL Server answers and accepts the login")
