"""Which server answers at a SQL Server's address, without changing anything."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from vnuma.domain.vm.endpoint import ServerSide, plain
from vnuma.domain.vm.surroundings import ServerUse
from vnuma.errors import CertificateRejected, LoginRefused, PrivilegeMissing, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.connect import APPLICATION, SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, fetch, value
from vnuma.sqlserver.instance import ready

# For its own connection a session needs no privilege; NULL without TCP.
# https://learn.microsoft.com/sql/t-sql/functions/connectionproperty-transact-sql
_ADDRESS = "SELECT CAST(CONNECTIONPROPERTY(N'local_net_address') AS nvarchar(48))"
_CLOCK = "SELECT SYSUTCDATETIME()"
_PROBE_S = 3.0
_LOGIN_S = 5.0


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


def answers(server: SqlServer) -> str | None:
    """What answers there like a SQL Server, as a sentence; None for silence.

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
        return "a server with another certificate answers"
    except LoginRefused:
        return "a SQL Server answers and refuses the login"
    return "a SQL Server answers and accepts the login"


_SERVER = (
    "SELECT CAST(SERVERPROPERTY(N'MachineName') AS nvarchar(128)) AS machine_name, "
    "CAST(SERVERPROPERTY(N'IsHadrEnabled') AS int) AS is_hadr_enabled, "
    "CAST(SERVERPROPERTY(N'IsClustered') AS int) AS is_clustered"
)
_REPLICAS = (
    "SELECT DISTINCT DB_NAME(database_id) AS name FROM sys.dm_hadr_database_replica_states WHERE is_local = 1"
)
_REPLICATED = (
    "SELECT name FROM sys.databases WHERE is_published = 1 OR is_subscribed = 1 "
    "OR is_merge_published = 1 OR is_distributor = 1 ORDER BY name"
)
_LOG_SHIPPED = (
    "SELECT primary_database AS name FROM msdb.dbo.log_shipping_primary_databases UNION "
    "SELECT secondary_database FROM msdb.dbo.log_shipping_secondary_databases"
)
_BACKUPS = (
    "SELECT command, DB_NAME(database_id) AS name FROM sys.dm_exec_requests "
    "WHERE command LIKE N'BACKUP %' OR command LIKE N'RESTORE %'"
)
_SESSIONS = (
    "SELECT program_name FROM sys.dm_exec_sessions WHERE is_user_process = 1 AND session_id <> @@SPID "
    f"AND (program_name IS NULL OR program_name <> N'{APPLICATION}') ORDER BY session_id"
)


def read_use(connection: pyodbc.Connection) -> ServerUse:
    """Read everything. Views that this login may not read are listed in `not_seen`."""
    unseen: list[str] = []

    def names(what: str, statement: str) -> tuple[str, ...]:
        try:
            rows: Sequence[tuple[object, ...]] = fetch(connection, statement)
        except (PrivilegeMissing, SqlFailed):
            unseen.append(what)
            return ()
        return tuple(" ".join(str(part or "unnamed") for part in row) for row in rows)

    machine, hadr, clustered = query.row(connection, _SERVER, Maybe(str), Maybe(int), Maybe(int))
    return ServerUse(
        machine_name=machine or None,
        side=read_server_side(connection),
        availability_groups=bool(hadr),
        replica_databases=names("availability groups", _REPLICAS) if hadr else (),
        clustered=bool(clustered),
        replicated=names("replication", _REPLICATED),
        log_shipped=names("log shipping", _LOG_SHIPPED),
        backups=names("backups", _BACKUPS),
        sessions=names("sessions", _SESSIONS),
        not_seen=tuple(unseen),
    )
