"""The cost of scanning pages of another memory node: one row of the guest's cross-node cost matrix.

The same scan of cached pages, at MAXDOP 1, from their own node and from another, by SQL Server's clock. A
scan reads ahead, which hides part of the distance, so it is not a latency in nanoseconds; SQL Server has no
tool for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from vnuma.domain.workloads.settings import COARSE_BELOW_MS
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.timing import Statement, timed

COST_MATRIX = (
    "one row of it is measured here, by scans from either node; for latencies in ns, and for pages on "
    "the other nodes, run Coreinfo -m (Sysinternals) or Intel MLC in the guest and keep its output "
    "with the run"
)
"""A report's text about the guest's cross-node cost matrix."""


@dataclass(frozen=True)
class NodePort:
    """A memory node, and the SQL Server port that is mapped to it."""

    node: int
    server: SqlServer


@dataclass(frozen=True)
class NodeScans:
    """Mean ms of one scan from the pages' own memory node, and from another one."""

    own_node: int
    own_ms: float
    other_node: int
    other_ms: float

    @property
    def ratio(self) -> float | None:
        """The ratio of other to own node; None for scans too short for a clock of whole ms."""
        return None if self.own_ms < COARSE_BELOW_MS else self.other_ms / self.own_ms

    @property
    def words(self) -> str:
        """The text in a report."""
        if self.ratio is None:
            return f"not evaluated: a scan of {self.own_ms:.0f} ms is too short to be timed"
        return (
            f"{self.own_ms:,.0f} ms from their own memory node {self.own_node}, "
            f"{self.other_ms:,.0f} ms from node {self.other_node} (x {self.ratio:.3f})"
        )


def scan_from_both(
    own: NodePort, other: NodePort, database: str, statement: str, *, rows: int, timeout_s: float
) -> NodeScans:
    """Scan from own, other, other and own node, so that linear drift cancels.

    The statement returns one row, which starts with the number of rows read. Raises MeasurementFailed or
    ConnectionDropped.
    """
    taken: dict[int, list[int]] = {own.node: [], other.node: []}
    scan = Statement(statement, rows, "result")
    for node_port in (own, other, other, own):
        with connect(node_port.server, database) as connection:
            timing = timed(connection, scan, timeout_s)
        taken[node_port.node].append(timing.elapsed_ms)
    return NodeScans(own.node, fmean(taken[own.node]), other.node, fmean(taken[other.node]))
