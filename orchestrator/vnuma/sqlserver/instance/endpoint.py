"""Who answers at a SQL Server's address: what the connection itself shows, without changing anything."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from vnuma.domain.vm.endpoint import ServerSide, plain
from vnuma.errors import CertificateRejected, LoginRefused, PrivilegeMissing, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.instance import quiet

# Of the own connection, and without a privilege; NULL for one that does not use TCP.
# https://learn.microsoft.com/sql/t-sql/functions/connectionproperty-transact-sql
_ADDRESS = "SELECT CAST(CONNECTIONPROPERTY(N'local_net_address') AS nvarchar(48))"
_CLOCK = "SELECT SYSUTCDATETIME()"
_PROBE_S = 3.0
_LOGIN_S = 5.0


@dataclass(frozen=True)
class Answer:
    """That something answers where nothing should, in words."""

    what: str


def read_server_side(connection: pyodbc.Connection) -> ServerSide:
    """The address that this connection reached, and SQL Server's uptime by its own tick count."""
    found = value(connection, _ADDRESS)
    address = None
    with suppress(ValueError):  # a name such as <local machine> is not an address
        address = plain(str(found)) if found else None
    uptime: float | None = None
    with suppress(PrivilegeMissing, SqlFailed):
        uptime = quiet.read_ticks(connection).uptime_s
    return ServerSide(address, uptime, time.monotonic())


def read_clock(connection: pyodbc.Connection) -> datetime:
    """The guest's own clock."""
    clock: datetime = value(connection, _CLOCK)
    return clock.replace(tzinfo=UTC)


def answers(server: SqlServer) -> Answer | None:
    """What answers there as a SQL Server does; None for silence.

    A proxy may take a connection for a server that is gone, so one that is taken is followed by one login.
    Raises DriverMissing.
    """
    if not server.instance:  # a named instance has no port before SQL Server Browser has told it
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
