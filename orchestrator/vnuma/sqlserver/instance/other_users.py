"""Other users of this SQL Server, and what depends on it, checked before a study interrupts it."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.domain.vm.surroundings import ServerUse
from vnuma.errors import PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.answers import Maybe
from vnuma.sqlserver.client.connection_string import APPLICATION
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import fetch
from vnuma.sqlserver.instance.endpoint import read_server_side

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

    machine, hadr, clustered = answers.row(connection, _SERVER, Maybe(str), Maybe(int), Maybe(int))
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
