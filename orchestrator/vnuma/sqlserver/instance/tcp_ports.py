"""SQL Server's TCP ports: read from its registry, written for its next start, and each connection's port.

The listener reads its registry at a start. sys.dm_server_registry shows the values, with documented columns;
writing needs xp_instance_regwrite, which is undocumented, requires sysadmin, and fails where the service
account may not write its own key. Sources:
https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/sys-dm-server-registry-transact-sql,
https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/sys-dm-exec-connections-transact-sql
"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.vm.endpoint import ports_of
from vnuma.errors import PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.answers import Maybe
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value, where

_KEY = r"Software\Microsoft\MSSQLServer\MSSQLServer\SuperSocketNetLib\Tcp\IPAll"

_READ = (
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


@dataclass(frozen=True)
class Arrival:
    """How a connection came in: the server's port, and the memory node of its affinity."""

    memory_node: int
    port: int


def read_settings(connection: pyodbc.Connection) -> TcpSettings:
    """The TCP settings in the registry. Raises PrivilegeMissing without VIEW SERVER STATE."""
    text = Maybe(lambda data: str(data).rstrip("\x00").strip())
    found: dict[str, str | None] = dict(answers.rows(connection, _READ, str, text))
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
    return frozenset(port for (port,) in answers.rows(connection, _LISTENING, int))


def arrival(connection: pyodbc.Connection) -> Arrival:
    """How this connection came in, as the server sees it."""
    node, port = answers.row(connection, _CONNECTION, int, int)
    return Arrival(node, port)


def is_linux(connection: pyodbc.Connection) -> bool:
    """Whether SQL Server (2017 and later) runs on Linux, which has no registry."""
    if value(connection, _HAS_PLATFORM) is None:
        return False
    return str(value(connection, _PLATFORM)).lower() == "linux"
