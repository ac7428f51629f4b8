"""The CPUs of SQL Server's log writers, and the CPUs for workers on their node or on another.

There is one log writer up to SQL Server 2014; since 2016 one per NUMA node, at most four, on hidden
schedulers bound to node 0 whatever the process affinity. Their CPUs are read, not assumed. Source:
https://techcommunity.microsoft.com/t5/sql-server-support-blog/ (SQL 2016 - It Just Runs Faster - Multiple Log
Writer Workers)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc

_WRITERS = (
    "SELECT r.session_id, r.scheduler_id, s.cpu_id, s.parent_node_id, n.memory_node_id, s.status "
    "FROM sys.dm_exec_requests AS r "
    "JOIN sys.dm_os_schedulers AS s ON s.scheduler_id = r.scheduler_id "
    "JOIN sys.dm_os_nodes AS n ON n.node_id = s.parent_node_id "
    "WHERE r.command = N'LOG WRITER' ORDER BY r.session_id"
)


@dataclass(frozen=True)
class LogWriter:
    """A log writer's session, scheduler and CPU, and the scheduler's SQL Server and memory nodes."""

    session_id: int
    scheduler_id: int
    cpu_id: int
    node_id: int
    memory_node_id: int
    status: str


@dataclass(frozen=True)
class WorkerCpus:
    """Equally many CPUs for workers on the log writers' memory node and on another; and unused ones."""

    writer_node: int
    other_node: int
    same: tuple[int, ...]
    other: tuple[int, ...]
    left_out: tuple[int, ...]

    def cpus(self, workers: str) -> tuple[int, ...]:
        """The CPUs of `same_node` or `other_node`."""
        return self.same if workers == "same_node" else self.other


def read_log_writers(connection: pyodbc.Connection) -> tuple[LogWriter, ...]:
    """The present log writers. Raises PrivilegeMissing without VIEW SERVER STATE."""
    return tuple(LogWriter(*found) for found in answers.rows(connection, _WRITERS, *[int] * 5, str))


def worker_cpus(writers: Sequence[LogWriter], nodes: Mapping[int, tuple[int, ...]]) -> WorkerCpus | None:
    """The CPUs of either side; None when the writers are on several nodes, or there is only one node.

    The writers' CPUs are left out; where the server gives none of that node (255: unbound), its lowest CPU.
    On the other node, the CPUs at the same positions are left out. Both sides are then cut to the shorter.
    """
    homes = {writer.memory_node_id for writer in writers}
    if len(homes) != 1 or not homes <= set(nodes) or len(nodes) < 2:
        return None
    home = homes.pop()
    other = min((node for node in nodes if node > home), default=min(set(nodes) - {home}))
    near, far = sorted(nodes[home]), sorted(nodes[other])
    taken = _places(writers, near)
    same = [cpu for place, cpu in enumerate(near) if place not in taken]
    away = [cpu for place, cpu in enumerate(far) if place not in taken]
    both = min(len(same), len(away))
    if not both:
        return None
    kept = (*same[:both], *away[:both])
    left_out = tuple(cpu for cpu in (*near, *far) if cpu not in kept)
    return WorkerCpus(home, other, tuple(same[:both]), tuple(away[:both]), left_out)


def _places(writers: Sequence[LogWriter], cpus: list[int]) -> set[int]:
    """The positions of the writers' CPUs within a node; the first free one for an unknown CPU."""
    taken = {cpus.index(writer.cpu_id) for writer in writers if writer.cpu_id in cpus}
    for writer in writers:
        if writer.cpu_id not in cpus:
            taken.add(min(set(range(len(cpus) + len(taken))) - taken))
    return taken
