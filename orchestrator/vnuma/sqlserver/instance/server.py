"""Facts of a SQL Server that decide which runs may be compared, its login's rights, the guest's topology.

For the design rules also ports, memory-optimised data, DOP feedback and processor groups.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from vnuma.domain.vm.facts import GuestTopology, SqlNode
from vnuma.domain.vm.role import READS_STATE
from vnuma.domain.vm.server import Permissions, ServerFacts, SqlFacts, XtpDatabase
from vnuma.errors import EnvironmentProblem, PrivilegeMissing, SqlFailed
from vnuma.logs.errorlog import ErrorLog, read_errorlog
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, fetch, where
from vnuma.sqlserver.database.dataset_sql import identifier

_PROPERTIES = (
    "SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS product_version, "
    "CAST(SERVERPROPERTY(N'ProductLevel') AS nvarchar(128)) AS product_level, "
    "CAST(SERVERPROPERTY(N'ProductUpdateLevel') AS nvarchar(128)) AS product_update_level, "
    "CAST(SERVERPROPERTY(N'Edition') AS nvarchar(128)) AS edition, "
    "CAST(SERVERPROPERTY(N'EngineEdition') AS int) AS engine_edition, "
    "CAST(SERVERPROPERTY(N'Collation') AS nvarchar(128)) AS collation, "
    "CAST(SERVERPROPERTY(N'IsXTPSupported') AS int) AS is_xtp_supported, "
    "CAST(SERVERPROPERTY(N'IsHadrEnabled') AS int) AS is_hadr_enabled, "
    "CAST(SERVERPROPERTY(N'IsClustered') AS int) AS is_clustered, "
    "@@VERSION AS version_text"
)
_PROPERTY_NAMES = (
    *("product_version", "product_level", "product_update_level", "edition", "engine_edition", "collation"),
    *("is_xtp_supported", "is_hadr_enabled", "is_clustered", "version_text"),
)
_SETTINGS = (
    "SELECT name, CAST(value_in_use AS bigint) AS value_in_use FROM sys.configurations WHERE name IN "
    "(N'max degree of parallelism', N'cost threshold for parallelism', N'max server memory (MB)', "
    "N'min server memory (MB)', N'lightweight pooling')"
)
_PERMISSIONS = (
    "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER STATE') AS view_server_state, "
    "HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW SERVER PERFORMANCE STATE') AS view_server_performance_state, "
    "HAS_PERMS_BY_NAME(NULL, NULL, N'CREATE ANY DATABASE') AS create_any_database, "
    "IS_SRVROLEMEMBER(N'sysadmin') AS is_sysadmin"
)
_SESSIONS = (
    "SELECT COUNT(*) AS sessions FROM sys.dm_exec_sessions WHERE is_user_process = 1 "
    "AND session_id <> @@SPID AND (program_name IS NULL OR program_name <> N'vnuma')"
)
MEMORY_NODES = (
    "SELECT memory_node_id, pages_kb, foreign_committed_kb FROM sys.dm_os_memory_nodes "
    "ORDER BY memory_node_id"
)
_NEEDED: dict[str, query.ColumnKind] = {
    **dict.fromkeys(("cpu_count", "scheduler_count", "max_workers_count", "physical_memory_kb"), int),
    **dict.fromkeys(("committed_kb", "committed_target_kb"), int),
    **dict.fromkeys(("ms_ticks", "sqlserver_start_time_ms_ticks"), int),
    "sqlserver_start_time": query.moment,
}
_SYS_INFO = (
    *("affinity_type_desc", "virtual_machine_type_desc", "numa_node_count"),
    *("softnuma_configuration_desc", "sql_memory_model_desc"),
)


def read_server(connection: pyodbc.Connection) -> ServerFacts:
    """Read all facts. Raises PrivilegeMissing first if the login may not read server state."""
    permissions = read_permissions(connection)
    require_state(permissions, where(connection))
    properties = _properties(connection)
    info = query.read_one(connection, "sys.dm_os_sys_info", _SYS_INFO, needed=_NEEDED)
    settings: dict[str, int] = dict(query.rows(connection, _SETTINGS, str, int))
    pooling = settings.get("lightweight pooling")
    return ServerFacts(
        version=str(properties["product_version"]),
        version_text=" ".join(str(properties["version_text"]).split()),
        product_level=properties["product_level"],
        update_level=properties["product_update_level"],
        edition=str(properties["edition"]),
        engine_edition=int(properties["engine_edition"]),
        collation=str(properties["collation"]),
        xtp_supported=bool(properties["is_xtp_supported"]),
        hadr_enabled=bool(properties["is_hadr_enabled"]),
        clustered=bool(properties["is_clustered"]),
        cpu_count=info["cpu_count"],
        scheduler_count=info["scheduler_count"],
        max_workers=info["max_workers_count"],
        physical_memory_kb=info["physical_memory_kb"],
        committed_kb=info["committed_kb"],
        committed_target_kb=info["committed_target_kb"],
        uptime_s=(info["ms_ticks"] - info["sqlserver_start_time_ms_ticks"]) / 1000,
        start_time=info["sqlserver_start_time"].isoformat(sep=" ", timespec="milliseconds"),
        affinity=info.get("affinity_type_desc"),
        virtual_machine=info.get("virtual_machine_type_desc"),
        numa_node_count=info.get("numa_node_count"),
        soft_numa=info.get("softnuma_configuration_desc"),
        memory_model=info.get("sql_memory_model_desc"),
        max_dop=settings.get("max degree of parallelism"),
        cost_threshold=settings.get("cost threshold for parallelism"),
        max_server_memory_mb=settings.get("max server memory (MB)"),
        min_server_memory_mb=settings.get("min server memory (MB)"),
        lightweight_pooling=None if pooling is None else bool(pooling),
        trace_flags=_trace_flags(connection),
        permissions=permissions,
        other_sessions=query.whole(connection, _SESSIONS),
        foreign_committed_kb={
            node: foreign for node, _pages, foreign in query.rows(connection, MEMORY_NODES, int, int, int)
        },
    )


def read_permissions(connection: pyodbc.Connection) -> Permissions:
    """What this login may do."""
    kinds = [Maybe(int)] * 4
    state, performance, create, sysadmin = query.row(connection, _PERMISSIONS, *kinds)
    known = None if performance is None else bool(performance)
    return Permissions(bool(state), known, bool(create), bool(sysadmin))


def require_state(permissions: Permissions, server: str) -> None:
    """Raise PrivilegeMissing unless the dynamic management views can be read."""
    if permissions.reads_state:
        return
    right = READS_STATE.named_for(permissions)
    raise PrivilegeMissing(
        f"{server}: the login may not see the server's state, so the effective topology cannot be read.",
        fix=f"GRANT {right} TO the login.",
    )


def _properties(connection: pyodbc.Connection) -> dict[str, Any]:
    levels, switches = [Maybe(str)] * 2, [Maybe(int)] * 3
    found = query.row(connection, _PROPERTIES, str, *levels, str, int, str, *switches, str)
    return dict(zip(_PROPERTY_NAMES, found, strict=True))


def _trace_flags(connection: pyodbc.Connection) -> tuple[int, ...] | None:
    """Global trace flags; None if this login may not read them."""
    try:
        rows = query.rows(connection, "DBCC TRACESTATUS (-1) WITH NO_INFOMSGS", *[int] * 4)
    except PrivilegeMissing:
        return None
    return tuple(sorted(flag for flag, _status, everywhere, _session in rows if everywhere))


# Filter for one line; 0 is the current log, 1 the server's own (not the agent's).
_START = "EXEC sys.sp_readerrorlog 0, 1, N'logical processors'"


def read_start(connection: pyodbc.Connection) -> ErrorLog:
    """Sockets, cores and licensed processors as found at SQL Server's start.

    Empty if the log was cycled since. Raises SqlFailed or PrivilegeMissing: reading needs membership of
    securityadmin, or VIEW ANY ERROR LOG since 2022.
    """
    return read_errorlog("\n".join(str(row[-1]) for row in fetch(connection, _START)))


# cpu_count is on every version; the sockets since 2016 SP2, soft-NUMA since 2016 (sys.dm_os_sys_info).
_GUEST_INFO = ("socket_count", "cores_per_socket", "softnuma_configuration_desc")
# The node of the dedicated administrator connection is not a NUMA node; its state contains DAC.
_NODES = (
    "SELECT node_id, memory_node_id, online_scheduler_count, node_state_desc FROM sys.dm_os_nodes "
    "WHERE node_state_desc NOT LIKE N'%DAC%' ORDER BY node_id"
)
_SCHEDULERS = (
    "SELECT status, COUNT(*) AS schedulers FROM sys.dm_os_schedulers "
    "WHERE status IN (N'VISIBLE ONLINE', N'VISIBLE OFFLINE') GROUP BY status"
)
_XTP = (
    "SELECT memory_node_id, SUM(pages_kb) AS pages_kb FROM sys.dm_os_memory_clerks "
    "WHERE type = N'MEMORYCLERK_XTP' GROUP BY memory_node_id"
)


def read_topology(connection: pyodbc.Connection) -> GuestTopology:
    """The topology that SQL Server sees now. Raises PrivilegeMissing without VIEW SERVER STATE.

    NUMA nodes are counted by distinct memory nodes, as sys.dm_os_nodes also lists soft-NUMA nodes.
    """
    info = query.read_one(connection, "sys.dm_os_sys_info", _GUEST_INFO, needed={"cpu_count": int})
    nodes = tuple(SqlNode(*found) for found in query.rows(connection, _NODES, int, int, int, str))
    if not nodes:
        raise query.unexpected(connection, "no node", _NODES)
    memory_nodes = {node.memory_node_id for node in nodes}
    schedulers: dict[str, int] = dict(query.rows(connection, _SCHEDULERS, str, int))
    return GuestTopology(
        vcpus=info["cpu_count"],
        sockets=info.get("socket_count"),
        cores_per_socket=info.get("cores_per_socket"),
        numa_nodes=len(memory_nodes),
        sql_cpu_nodes=len(nodes),
        soft_numa=info.get("softnuma_configuration_desc"),
        nodes=nodes,
        visible_online=schedulers.get("VISIBLE ONLINE", 0),
        visible_offline=schedulers.get("VISIBLE OFFLINE", 0),
        memory_node_kb={
            node: pages
            for node, pages, _foreign in query.rows(connection, MEMORY_NODES, int, int, int)
            if node in memory_nodes
        },
        xtp_pages_kb=xtp_pages_kb(connection),
    )


def xtp_pages_kb(connection: pyodbc.Connection) -> dict[int, int]:
    """Kilobytes of memory-optimised data by memory node (MEMORYCLERK_XTP).

    Recovery threads load the data before anybody can log in, so its placement may change at each boot. Raises
    PrivilegeMissing.
    """
    return dict(sorted(query.rows(connection, _XTP, int, int)))


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
