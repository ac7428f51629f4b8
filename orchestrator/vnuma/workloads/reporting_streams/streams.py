"""Concurrent streams: connections that run one query several times, started together.

Threads are sufficient: the driver releases the interpreter's lock while waiting, and each query returns one
row, so the client has almost nothing to do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean

from vnuma.domain.workloads.settings import COARSE_BELOW_MS
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.statistics_time import Statement, Timing, timed
from vnuma.workloads.interface import Query, Reading
from vnuma.workloads.reporting_streams.settings import MS_PER_QUERY, SPREAD

_MS_PER_HOUR = 3_600_000


COST_MATRIX = (
    "one row of it is measured here, by scans from either node; for latencies in ns, and for pages on "
    "the other nodes, run Coreinfo -m (Sysinternals) or Intel MLC in the guest and keep its output "
    "with the run"
)
"""A report's text about the guest's cross-node cost matrix."""


def streams_reading(
    streams: Sequence[Sequence[Timing]], figures: Mapping[str, float], execution: Mapping[str, object]
) -> Reading:
    """All streams' result on SQL Server's clock, with those further figures.

    The rate is the sum of the streams' own rates, that is, the rate while all of them run. A spread far above
    1 says that they did not run together for long. A query below half a millisecond reads 0.
    """
    elapsed = [max(sum(timing.elapsed_ms for timing in stream), 0.5) for stream in streams]
    queries = sum(map(len, streams))
    return Reading(
        elapsed_ms=max(elapsed),
        value=math.fsum(len(stream) / ms * _MS_PER_HOUR for stream, ms in zip(streams, elapsed, strict=True)),
        figures={
            MS_PER_QUERY.name: math.fsum(elapsed) / queries,
            SPREAD.name: max(elapsed) / min(elapsed),
            **figures,
        },
        cpu_ms=math.fsum(timing.cpu_ms for stream in streams for timing in stream),
        client_ms=max(sum(timing.client_ms for timing in stream) for stream in streams),
        rows=queries,
        execution={"streams": len(streams), "queries": queries, **execution},
    )


def run_streams(
    connections: Sequence[pyodbc.Connection], query: Query, times: int, timeout_s: float
) -> list[list[Timing]]:
    """Run the query on every connection at once. Raises the first failed stream's error."""
    start = threading.Barrier(len(connections))

    def one(connection: pyodbc.Connection) -> list[Timing]:
        start.wait()
        return [timed(connection, query, timeout_s) for _ in range(times)]

    with ThreadPoolExecutor(max_workers=len(connections), thread_name_prefix="stream") as pool:
        return list(pool.map(one, connections))


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
