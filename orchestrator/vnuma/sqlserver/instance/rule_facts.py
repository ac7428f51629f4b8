"""A SQL Server for the design rules: also ports, memory-optimised data, DOP feedback and groups."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from vnuma.domain.vm.server import SqlFacts, XtpDatabase
from vnuma.errors import EnvironmentProblem, PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe
from vnuma.sqlserver.database.dataset_sql import identifier
from vnuma.sqlserver.instance.server import read_server, read_start, read_topology

# HKLM\\...\\SuperSocketNetLib\\Tcp\\IPAll; the view needs VIEW SERVER STATE, and no right to the registry.
# https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/sys-dm-server-registry-transact-sql
_PORTS = (
    "SELECT registry_key, CAST(value_data AS nvarchar(256)) AS value_data FROM sys.dm_server_registry "
    "WHERE value_name = N'TcpPort'"
)
# Each database's memory-optimised data has its own clerk, DB_ID_n.
# https://learn.microsoft.com/sql/relational-databases/in-memory-oltp/monitor-and-troubleshoot-memory-usage
_CLERKS = "SELECT name FROM sys.dm_os_memory_clerks WHERE type = N'MEMORYCLERK_XTP'"
_DATABASES = "SELECT database_id, name, resource_pool_id FROM sys.databases WHERE database_id > 4"
_POOLS = (
    "SELECT pool_id, name, min_memory_percent, max_memory_percent FROM sys.resource_governor_resource_pools"
)
_OPEN = "SELECT name FROM sys.databases WHERE database_id > 4 AND state = 0 AND HAS_DBACCESS(name) = 1"
_FEEDBACK = (
    "SELECT CAST(value AS int) FROM {}.sys.database_scoped_configurations WHERE name = N'DOP_FEEDBACK'"
)
_GROUPS = "SELECT DISTINCT processor_group FROM sys.dm_os_nodes WHERE node_state_desc NOT LIKE N'%DAC%'"
DOP_FEEDBACK_SINCE = 16
"""SQL Server 2022."""


Read = TypeVar("Read")


def read_sql(connection: pyodbc.Connection) -> SqlFacts:
    """Read a server, and each of what only rules need independently of the others' errors.

    Raises PrivilegeMissing if the login may not read server state, SqlFailed, SqlUnreachable.
    """
    server, topology, licensed = read_server(connection), read_topology(connection), None
    with suppress(EnvironmentProblem):  # no right to read the log: the rest counts all the same
        licensed = read_start(connection).using
    unread: dict[str, str] = {}

    def asked(name: str, read: Callable[[pyodbc.Connection], Read | None]) -> Read | None:
        try:
            return read(connection)
        except (SqlFailed, PrivilegeMissing) as error:
            unread[name] = error.what
            return None

    return SqlFacts(
        server,
        topology,
        licensed,
        tcp_ports=asked("tcp_ports", _ports),
        xtp_databases=asked("xtp_databases", _xtp),
        dop_feedback=asked("dop_feedback", _dop_feedback) if server.major >= DOP_FEEDBACK_SINCE else None,
        processor_groups=asked("processor_groups", _groups),
        unread=unread,
    )


def _ports(connection: pyodbc.Connection) -> str | None:
    """The static ports of all addresses, including node masks; None for a dynamic port."""
    rows = query.rows(connection, _PORTS, str, Maybe(str))
    found = [(ports or "").strip("\0 ") for key, ports in rows if key.lower().endswith("\\ipall")]
    return (found[0] or "dynamic") if found else None


def _xtp(connection: pyodbc.Connection) -> tuple[XtpDatabase, ...] | None:
    if not query.present(connection, "sys.databases", ("resource_pool_id",)):
        return None
    clerks = {name for (name,) in query.rows(connection, _CLERKS, str)}
    found = query.rows(connection, _POOLS, int, str, int, int)
    pools = {number: (name, low, high) for number, name, low, high in found}
    databases = query.rows(connection, _DATABASES, int, str, Maybe(int))
    return tuple(
        XtpDatabase(name, *pools.get(pool, (None, None, None)))
        for number, name, pool in databases
        if f"DB_ID_{number}" in clerks
    )


def _groups(connection: pyodbc.Connection) -> int | None:
    return len(query.rows(connection, _GROUPS, int)) or None


def _dop_feedback(connection: pyodbc.Connection) -> bool | None:
    """Whether any database that this login may enter has it on; None if it may enter none."""
    found: list[int] = []
    for (name,) in query.rows(connection, _OPEN, str):
        statement = _FEEDBACK.format(identifier(name))
        found += [on for (on,) in query.rows(connection, statement, int)]
    return any(found) if found else None
