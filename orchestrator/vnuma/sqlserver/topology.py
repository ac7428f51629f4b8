"""What SQL Server shows of the guest's topology, with columns asked for by what this version has."""

from __future__ import annotations

from vnuma.domain.facts import GuestTopology, SqlNode
from vnuma.sqlserver import columns
from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.query import fetch
from vnuma.sqlserver.server import MEMORY_NODES, read_server

__all__ = ["read_server", "read_topology", "xtp_pages_kb"]

# cpu_count is on every version; the sockets since 2016 SP2, soft-NUMA since 2016 (sys.dm_os_sys_info).
_SYS_INFO = ("cpu_count", "socket_count", "cores_per_socket", "softnuma_configuration_desc")
# The node of the dedicated administrator connection is no NUMA node; its state says DAC.
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
    """The topology as SQL Server sees it now. Raises PrivilegeMissing without VIEW SERVER STATE.

    NUMA nodes are counted by distinct memory nodes: rows of sys.dm_os_nodes include soft-NUMA.
    """
    info = columns.read_one(connection, "sys.dm_os_sys_info", _SYS_INFO)
    nodes = tuple(
        SqlNode(int(node), int(memory_node), int(schedulers), str(state))
        for node, memory_node, schedulers, state in fetch(connection, _NODES)
    )
    memory_nodes = {node.memory_node_id for node in nodes}
    schedulers = {str(status): int(count) for status, count in fetch(connection, _SCHEDULERS)}
    return GuestTopology(
        vcpus=int(info["cpu_count"]),
        sockets=info.get("socket_count"),
        cores_per_socket=info.get("cores_per_socket"),
        numa_nodes=len(memory_nodes),
        sql_cpu_nodes=len(nodes),
        soft_numa=info.get("softnuma_configuration_desc"),
        nodes=nodes,
        visible_online=schedulers.get("VISIBLE ONLINE", 0),
        visible_offline=schedulers.get("VISIBLE OFFLINE", 0),
        memory_node_kb={
            int(node): int(pages)
            for node, pages, _foreign in fetch(connection, MEMORY_NODES)
            if node in memory_nodes
        },
        xtp_pages_kb=xtp_pages_kb(connection),
    )


def xtp_pages_kb(connection: pyodbc.Connection) -> dict[int, int]:
    """Kilobytes of memory-optimised data by memory node (MEMORYCLERK_XTP).

    Recovery threads load the data before anybody can log in: where it lies is decided anew at each
    boot. Raises PrivilegeMissing.
    """
    return {int(node): int(pages) for node, pages in sorted(fetch(connection, _XTP))}
