"""The guest's topology in SQL Server's views, with the columns of this version."""

from __future__ import annotations

from vnuma.domain.vm.facts import GuestTopology, SqlNode
from vnuma.sqlserver.client import answers, columns
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.server import MEMORY_NODES, read_server

__all__ = ["read_server", "read_topology", "xtp_pages_kb"]

# cpu_count is on every version; the sockets since 2016 SP2, soft-NUMA since 2016 (sys.dm_os_sys_info).
_SYS_INFO = ("socket_count", "cores_per_socket", "softnuma_configuration_desc")
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
    info = columns.read_one(connection, "sys.dm_os_sys_info", _SYS_INFO, needed={"cpu_count": int})
    nodes = tuple(SqlNode(*found) for found in answers.rows(connection, _NODES, int, int, int, str))
    if not nodes:
        raise answers.unexpected(connection, "no node", _NODES)
    memory_nodes = {node.memory_node_id for node in nodes}
    schedulers: dict[str, int] = dict(answers.rows(connection, _SCHEDULERS, str, int))
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
            for node, pages, _foreign in answers.rows(connection, MEMORY_NODES, int, int, int)
            if node in memory_nodes
        },
        xtp_pages_kb=xtp_pages_kb(connection),
    )


def xtp_pages_kb(connection: pyodbc.Connection) -> dict[int, int]:
    """Kilobytes of memory-optimised data by memory node (MEMORYCLERK_XTP).

    Recovery threads load the data before anybody can log in, so its placement may change at each boot. Raises
    PrivilegeMissing.
    """
    return dict(sorted(answers.rows(connection, _XTP, int, int)))
