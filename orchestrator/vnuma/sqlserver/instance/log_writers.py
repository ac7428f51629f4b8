"""Where SQL Server's log writers run, and which CPUs that leaves to workers beside them or away from them.

There is one log writer up to SQL Server 2014; since 2016 one for each NUMA node, at most four, on hidden
schedulers that are bound to node 0 whatever the process affinity. They are found, not assumed.
Source: https://techcommunity.microsoft.com/t5/sql-server-support-blog/ (SQL 2016 - It Just Runs Faster -
Multiple Log Writer Workers)
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
    """One log writer: session, scheduler, CPU, and the scheduler's SQL Server and memory nodes."""

    session_id: int
    scheduler_id: int
    cpu_id: int
    node_id: int
    memory_node_id: int
    status: str


@dataclass(frozen=True)
class WorkerCpus:
    """CPUs on the log writers' memory node and on another, equally many, for workers; and those left out."""

    writer_node: int
    other_node: int
    same: tuple[int, ...]
    other: tuple[int, ...]
    left_out: tuple[int, ...]

    def cpus(self, workers: str) -> tuple[int, ...]:
        """Of `same_node` or `other_node`."""
        return self.same if workers == "same_node" else self.other


def read_log_writers(connection: pyodbc.Connection) -> tuple[LogWriter, ...]:
    """All of them, as they run now. Raises PrivilegeMissing without VIEW SERVER STATE."""
    return tuple(LogWriter(*found) for found in answers.rows(connection, _WRITERS, *[int] * 5, str))


def worker_cpus(writers: Sequence[LogWriter], nodes: Mapping[int, tuple[int, ...]]) -> WorkerCpus | None:
    """The CPUs of either side; None when the writers are on several nodes, or there is only one.

    Left out on the writers' node are their CPUs; where the server does not name one of that node (255: bound
    to none), its lowest. On the other node, those in the same places. Both sides are then cut to the shorter.
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
    """The places of the writers' CPUs among a node's; the first free one for a CPU that is not named."""
    taken = {cpus.index(writer.cpu_id) for writer in writers if writer.cpu_id in cpus}
    for writer in writers:
        if writer.cpu_id not in cpus:
            taken.add(min(set(range(len(cpus) + len(taken))) - taken))
    return taken
