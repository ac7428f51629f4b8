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

from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.timing import Timing, timed
from vnuma.workloads.query import Query

_MS_PER_HOUR = 3_600_000


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
