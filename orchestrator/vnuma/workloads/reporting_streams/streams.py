"""Concurrent streams: connections that run one query several times, started together.

Threads are sufficient: the driver releases the interpreter's lock while waiting, and each query returns one
row, so the client has almost nothing to do.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import fmean

from vnuma.domain.workloads.settings import COARSE_BELOW_MS
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.statistics_time import Statement, Timing, timed
from vnuma.workloads.interface import Query

_MS_PER_HOUR = 3_600_000


COST_MATRIX = (
    "one row of it is measured here, by scans from either node; for latencies in ns, and for pages on "
    "the other nodes, run Coreinfo -m (Sysinternals) or Intel MLC in the guest and keep its output "
    "with the run"
)
"""A report's text about the guest's cross-node cost matrix."""


@dataclass(frozen=True)
class Streamed:
    """All streams' results on SQL Server's clock: a list of timings for each stream."""

    streams: Sequence[Sequence[Timing]]

    @property
    def queries_per_hour(self) -> float:
        """The sum of the streams' own rates, that is, the rate while all of them run."""
        return math.fsum(
            len(stream) / elapsed * _MS_PER_HOUR
            for stream, elapsed in zip(self.streams, self._elapsed, strict=True)
        )

    @property
    def ms_per_query(self) -> float:
        """Mean elapsed time of a query."""
        return math.fsum(self._elapsed) / self.queries

    @property
    def window_ms(self) -> float:
        """From the common start to the end of the slowest stream."""
        return max(self._elapsed)

    @property
    def spread(self) -> float:
        """The slowest stream over the fastest: far above 1, they did not run together for long."""
        return self.window_ms / min(self._elapsed)

    @property
    def queries(self) -> int:
        """Number of executed queries."""
        return sum(len(stream) for stream in self.streams)

    @property
    def cpu_ms(self) -> float:
        """CPU time of all queries."""
        return math.fsum(timing.cpu_ms for stream in self.streams for timing in stream)

    @property
    def client_ms(self) -> float:
        """This machine's time of the longest stream."""
        return max(sum(timing.client_ms for timing in stream) for stream in self.streams)

    @property
    def _elapsed(self) -> list[float]:
        # A query below half a millisecond reads 0 on the server's clock.
        return [max(sum(timing.elapsed_ms for timing in stream), 0.5) for stream in self.streams]


@contextmanager
def opened(server: SqlServer, database: str, count: int) -> Iterator[list[pyodbc.Connection]]:
    """That many connections, opened one after the other and closed at the end."""
    with ExitStack() as open_ones:
        yield [open_ones.enter_context(connect(server, database)) for _ in range(count)]


def run_streams(
    connections: Sequence[pyodbc.Connection], query: Query, times: int, timeout_s: float
) -> Streamed:
    """Run the query on every connection at once. Raises the first failed stream's error."""
    start = threading.Barrier(len(connections))

    def one(connection: pyodbc.Connection) -> list[Timing]:
        start.wait()
        return [timed(connection, query, timeout_s) for _ in range(times)]

    with ThreadPoolExecutor(max_workers=len(connections), thread_name_prefix="stream") as pool:
        return Streamed(list(pool.map(one, connections)))


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
