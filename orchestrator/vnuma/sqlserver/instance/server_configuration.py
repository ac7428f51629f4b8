"""What ALTER SERVER CONFIGURATION sets: process affinity, at once, and soft-NUMA, at the next start.

Process affinity names the guest CPUs on which SQL Server's schedulers run. The statement takes CPUs or NUMA
nodes; CPUs are used here, because soft-NUMA nodes interleave them. Other schedulers are VISIBLE OFFLINE. It
survives restarts. Source:
https://learn.microsoft.com/sql/t-sql/statements/alter-server-configuration-transact-sql

sys.configurations has soft-NUMA as `automatic soft-NUMA disabled` (SQL Server 2016 and later): `value` is the
next start's, `value_in_use` the present one's. sys.dm_os_sys_info cannot distinguish a switch that is off
from a machine with nothing to split. Source:
https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.domain.vm.endpoint import ports_of
from vnuma.errors import PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, run, value, where
from vnuma.sqlserver.database.dataset_sql import identifier, literal
from vnuma.sqlserver.database.ownership import require_ours

AUTO = "AUTO"

_SCHEDULERS = (
    "SELECT s.cpu_id, n.memory_node_id, s.status FROM sys.dm_os_schedulers AS s "
    "JOIN sys.dm_os_nodes AS n ON n.node_id = s.parent_node_id "
    "WHERE s.status IN (N'VISIBLE ONLINE', N'VISIBLE OFFLINE') ORDER BY s.cpu_id"
)


def read_affinity(connection: pyodbc.Connection) -> str:
    """`AUTO`, or a list of the CPUs in use: `0,1,2`. Raises PrivilegeMissing without VIEW SERVER STATE."""
    kind = value(connection, "SELECT affinity_type_desc FROM sys.dm_os_sys_info")
    return AUTO if kind == AUTO else affinity_to(online_cpus(connection))


def online_cpus(connection: pyodbc.Connection) -> tuple[int, ...]:
    """The guest's CPUs whose schedulers are online."""
    return tuple(sorted(cpu for cpus in cpus_by_memory_node(connection).values() for cpu in cpus))


def cpus_by_memory_node(connection: pyodbc.Connection) -> dict[int, tuple[int, ...]]:
    """The CPUs in use by memory node, which is a vNUMA node of the guest."""
    found: dict[int, list[int]] = defaultdict(list)
    for cpu, node, status in query.rows(connection, _SCHEDULERS, int, int, str):
        if status == "VISIBLE ONLINE":
            found[node].append(cpu)
    return {node: tuple(cpus) for node, cpus in sorted(found.items())}


def set_affinity(connection: pyodbc.Connection, wanted: str) -> None:
    """Set it to `AUTO` or a list of CPUs, and read it back. Raises SqlFailed, PrivilegeMissing."""
    run(connection, f"ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = {_checked(wanted)}")
    now = read_affinity(connection)
    if now != wanted:
        raise SqlFailed(
            f"{where(connection)}: process affinity was set to {wanted}, but reads back as {now}.",
            fix="It needs ALTER SETTINGS; see sys.dm_os_schedulers.",
        )


def affinity_to(cpus: Iterable[int]) -> str:
    """The affinity value for those CPUs."""
    return ",".join(map(str, sorted(cpus)))


def _checked(wanted: str) -> str:
    """Allows only this module's own values into the statement."""
    return AUTO if wanted == AUTO else affinity_to(int(cpu) for cpu in wanted.split(","))


_READ = (
    "SELECT CAST(value AS int) AS value, CAST(value_in_use AS int) AS value_in_use "
    "FROM sys.configurations WHERE name = N'automatic soft-NUMA disabled'"
)


@dataclass(frozen=True)
class SoftNuma:
    """Whether automatic soft-NUMA is on: at the next start, and now."""

    configured: bool
    in_use: bool


def read_soft_numa(connection: pyodbc.Connection) -> SoftNuma | None:
    """The setting; None where this version lacks it (before 2016)."""
    rows = query.rows(connection, _READ, int, int)
    return SoftNuma(not rows[0][0], not rows[0][1]) if rows else None


def configure_soft_numa(connection: pyodbc.Connection, on: bool) -> SoftNuma:
    """Set it for the next start and read it back. Raises SqlFailed, PrivilegeMissing."""
    run(connection, f"ALTER SERVER CONFIGURATION SET SOFTNUMA {'ON' if on else 'OFF'}")
    now = read_soft_numa(connection)
    if now is None or now.configured is not on:
        raise SqlFailed(
            f"{where(connection)}: automatic soft-NUMA was switched {'on' if on else 'off'}, but reads "
            "back differently.",
            fix="It needs SQL Server 2016 or later and ALTER SETTINGS; see SELECT * FROM sys.configurations.",
        )
    return now


POOL = "vnuma_pool"

_POOL_PERCENT = f"SELECT max_memory_percent FROM sys.resource_governor_resource_pools WHERE name = N'{POOL}'"
_ENABLED = "SELECT CAST(is_enabled AS int) AS enabled FROM sys.resource_governor_configuration"
_PENDING = (
    "SELECT CAST(is_reconfiguration_pending AS int) AS pending FROM sys.dm_resource_governor_configuration"
)
_BOUND = (
    "SELECT d.name FROM sys.databases AS d JOIN sys.resource_governor_resource_pools AS p "
    f"ON p.pool_id = d.resource_pool_id WHERE p.name = N'{POOL}'"
)
_EDITION = "SELECT CAST(SERVERPROPERTY(N'EngineEdition') AS int) AS engine_edition"
_ENTERPRISE = 3


@dataclass(frozen=True)
class Governor:
    """The Resource Governor: on or off, pending changes of others, and our pool's share."""

    enabled: bool
    pending: bool
    pool_percent: int | None
    bound: tuple[str, ...]


def has_governor(connection: pyodbc.Connection) -> bool:
    """Whether the edition has a Resource Governor: Enterprise, Developer and Evaluation do."""
    return bool(value(connection, _EDITION) == _ENTERPRISE)


def read_governor(connection: pyodbc.Connection) -> Governor:
    """Its present state. Raises PrivilegeMissing."""
    percents = query.rows(connection, _POOL_PERCENT, int)
    return Governor(
        enabled=bool(value(connection, _ENABLED)),
        pending=bool(value(connection, _PENDING)),
        pool_percent=percents[0][0] if percents else None,
        bound=tuple(name for (name,) in query.rows(connection, _BOUND, str)),
    )


def hold(connection: pyodbc.Connection, database: str, percent: int) -> None:
    """Create the pool with that share and bind our database. Raises SqlFailed, PrivilegeMissing."""
    now = read_governor(connection)
    if now.pool_percent != percent:
        verb = "CREATE" if now.pool_percent is None else "ALTER"
        run(connection, f"{verb} RESOURCE POOL {POOL} WITH (MAX_MEMORY_PERCENT = {percent})")
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
    if database not in now.bound:
        run(connection, f"EXEC sys.sp_xtp_bind_db_resource_pool {literal(database)}, {literal(POOL)}")
        _restart_database(connection, database)


def remove(connection: pyodbc.Connection, *, enabled: bool) -> None:
    """Remove the pool, and leave the Resource Governor on or off as it was.

    Unbinds and restarts our database if it is still bound. Raises ForeignDatabase for another's, SqlFailed
    for a wrong result.
    """
    now = read_governor(connection)
    for database in now.bound:
        require_ours(connection, database)
        run(connection, f"EXEC sys.sp_xtp_unbind_db_resource_pool {literal(database)}")
        _restart_database(connection, database)
    if now.pool_percent is not None:
        run(connection, f"DROP RESOURCE POOL {POOL}")
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
    if not enabled and read_governor(connection).enabled:
        run(connection, "ALTER RESOURCE GOVERNOR DISABLE")
    require_removed(connection, enabled=enabled)


def require_removed(connection: pyodbc.Connection, *, enabled: bool) -> None:
    """Raise SqlFailed if our pool exists, or the Resource Governor is not as given."""
    now = read_governor(connection)
    if now.pool_percent is not None or now.enabled is not enabled:
        raise SqlFailed(
            f"{where(connection)}: the pool {POOL} or the Resource Governor differs from before: {now}.",
            fix=f"DROP RESOURCE POOL {POOL}; ALTER RESOURCE GOVERNOR "
            f"{'RECONFIGURE' if enabled else 'DISABLE'}",
        )


def _restart_database(connection: pyodbc.Connection, database: str) -> None:
    """Take it offline and online again, which makes a binding effective."""
    name = identifier(database)
    run(connection, f"ALTER DATABASE {name} SET OFFLINE WITH ROLLBACK IMMEDIATE")
    run(connection, f"ALTER DATABASE {name} SET ONLINE")


_KEY = r"Software\Microsoft\MSSQLServer\MSSQLServer\SuperSocketNetLib\Tcp\IPAll"

_READ_PORTS = (
    "SELECT value_name, CAST(value_data AS nvarchar(512)) AS value_data FROM sys.dm_server_registry "
    "WHERE registry_key LIKE N'%SuperSocketNetLib\\Tcp\\IPAll' "
    "AND value_name IN (N'TcpPort', N'TcpDynamicPorts') "
    "OR registry_key LIKE N'%SuperSocketNetLib\\Tcp' AND value_name = N'ListenOnAllIPs'"
)
_WRITE = (
    "EXEC master.sys.xp_instance_regwrite N'HKEY_LOCAL_MACHINE', "
    f"N'{_KEY}', N'TcpPort', N'REG_SZ', N'{{ports}}'"
)
_LISTENING = (
    "SELECT DISTINCT port FROM sys.dm_tcp_listener_states "
    "WHERE type_desc = N'TSQL' AND state_desc = N'ONLINE'"
)
_CONNECTION = "SELECT node_affinity, local_tcp_port FROM sys.dm_exec_connections WHERE session_id = @@SPID"
_PLATFORM = "SELECT host_platform FROM sys.dm_os_host_info"
_HAS_PLATFORM = "SELECT OBJECT_ID(N'sys.dm_os_host_info') AS host_info"

BY_HAND = "SQL Server Configuration Manager, TCP/IP, IP Addresses, IPAll"


@dataclass(frozen=True)
class TcpSettings:
    """The registry's values for the next start; None: not there."""

    ports: str | None
    dynamic: str | None
    all_addresses: bool


def read_settings(connection: pyodbc.Connection) -> TcpSettings:
    """The TCP settings in the registry. Raises PrivilegeMissing without VIEW SERVER STATE."""
    text = Maybe(lambda data: str(data).rstrip("\x00").strip())
    found: dict[str, str | None] = dict(query.rows(connection, _READ_PORTS, str, text))
    return TcpSettings(
        found.get("TcpPort"),
        found.get("TcpDynamicPorts"),
        found.get("ListenOnAllIPs", "1") not in {"0", None},
    )


def write_ports(connection: pyodbc.Connection, wanted: str) -> None:
    """Set TcpPort for the next start, and read it back. Raises PrivilegeMissing, SqlFailed, ValueError."""
    ports_of(wanted)  # only a valid setting may enter the statement
    try:
        run(connection, _WRITE.format(ports=wanted))
    except ServerError as error:
        raise PrivilegeMissing(
            f"{where(connection)}: SQL Server could not write its TcpPort setting: {error.what}",
            fix=f"Let its service account write its registry key, or set it by hand: {BY_HAND}.",
        ) from error
    now = read_settings(connection).ports
    if now != wanted:
        raise SqlFailed(
            f"{where(connection)}: TcpPort was set to {wanted}, but reads back as {now}.",
            fix=f"See {BY_HAND}.",
        )


def listening(connection: pyodbc.Connection) -> frozenset[int]:
    """The ports on which SQL Server listens for T-SQL now."""
    return frozenset(port for (port,) in query.rows(connection, _LISTENING, int))


def arrival(connection: pyodbc.Connection) -> tuple[int, int]:
    """The memory node of this connection's affinity, and the server's port by which it came in."""
    node, port = query.row(connection, _CONNECTION, int, int)
    return node, port


def is_linux(connection: pyodbc.Connection) -> bool:
    """Whether SQL Server (2017 and later) runs on Linux, which has no registry."""
    if value(connection, _HAS_PLATFORM) is None:
        return False
    return str(value(connection, _PLATFORM)).lower() == "linux"
