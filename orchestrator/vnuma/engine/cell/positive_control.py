"""The positive control: the reference arm with its tables on one vNUMA node and its worker on another.

The dataset is created while SQL Server's process affinity is limited to one node's CPUs, then measured while
it is limited to another's. The memory clerk's growth by node proves where the pages are; the online
schedulers prove where the worker runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.journal import journal_of
from vnuma.engine.cell.system_under_test import CellSystem
from vnuma.engine.instance.process_affinity import PROCESS_AFFINITY
from vnuma.engine.lease.attempt import Attempt, add_facts, say_step
from vnuma.errors import PlacementNotProven
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.instance.server import xtp_pages_kb
from vnuma.sqlserver.instance.server_configuration import affinity_to, cpus_by_memory_node
from vnuma.workloads.interface import workload_named

SCOPE = "control"
PROVEN_SHARE = 0.9
"""At least this share of the new tables' pages must be on the one node."""


@dataclass(frozen=True)
class Placement:
    """What was proven: pages (KB of growth, by memory node) on `data_node`, work only on `worker_node`."""

    data_node: int
    worker_node: int
    grown_kb: Mapping[int, int]
    share: float
    worker_cpus: tuple[int, ...]


@contextmanager
def placed(context: VmContext, attempt: Attempt) -> Iterator[None]:
    """Keep data and work on two vNUMA nodes, then restore process affinity; does nothing for other arms.

    Raises PlacementNotProven, SqlFailed, SqlUnreachable.
    """
    if attempt.arm != context.study.control_arm:
        yield
        return
    with PROCESS_AFFINITY.put_back(context.vm, context.sql(), journal_of(context)):
        add_facts(context, attempt, SCOPE, {"placement": asdict(_place(context, attempt))})
        yield


def _place(context: VmContext, attempt: Attempt) -> Placement:
    server, journal, study = context.sql(), journal_of(context), context.study
    say_step(context, attempt, "measure control: placing the tables")
    with connect(server) as connection:
        nodes = cpus_by_memory_node(connection)
        if len(nodes) < 2:
            raise PlacementNotProven(
                f"{context.vm.name}: the guest has one vNUMA node, so no memory in it is remote.",
                fix="The control needs a reference arm with two or more nodes; or set design.control: none.",
            )
        data_node, worker_node = min(nodes), max(nodes)  # neighbours may share a host node
        dataset.drop(connection, study.dataset.database)
        empty = xtp_pages_kb(connection)
    PROCESS_AFFINITY.switch(server, affinity_to(nodes[data_node]), journal)
    system = CellSystem(context, attempt)
    system.record("dataset", workload_named(study.workload.name).prepare(system))
    with connect(server) as connection:
        grown = _growth(empty, xtp_pages_kb(connection))
    PROCESS_AFFINITY.switch(server, affinity_to(nodes[worker_node]), journal)
    share = grown.get(data_node, 0) / sum(grown.values()) if grown else 0.0
    if share < PROVEN_SHARE:
        raise PlacementNotProven(
            f"{context.vm.name}: {share * 100:.0f}% of the tables' pages are on vNUMA node "
            f"{data_node}, where they were made; proof needs {PROVEN_SHARE * 100:.0f}% ({grown} KB by "
            "node).",
            fix="Check the guest's free memory by node (sys.dm_os_memory_nodes).",
        )
    return Placement(data_node, worker_node, grown, share, nodes[worker_node])


def _growth(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Growth in KB by memory node; 0 for a node that released pages."""
    grown = {node: pages - before.get(node, 0) for node, pages in after.items()}
    return {node: kb for node, kb in grown.items() if kb > 0}
