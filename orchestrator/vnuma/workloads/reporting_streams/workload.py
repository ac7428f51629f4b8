"""Reporting queries in concurrent streams over pages of one memory node, from that node or another."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean

from vnuma.domain.study.study import Dataset
from vnuma.domain.workloads.settings import COARSE_BELOW_MS
from vnuma.errors import MeasurementFailed, PlacementNotProven, PrivilegeMissing
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import increase, run_all
from vnuma.sqlserver.client.statistics_time import Statement, Timing, timed
from vnuma.sqlserver.instance import buffer_pool, server, server_configuration
from vnuma.workloads.interface import Bench, Document, Obstacle, Query, Reading, SystemUnderTest, Workload
from vnuma.workloads.reporting_streams import tran_stats
from vnuma.workloads.reporting_streams.settings import (
    MISPLACED,
    MS_PER_QUERY,
    REMOTE_SCAN,
    SPREAD,
    ReportingStreams,
)

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
    """Run the query on every connection at once. Raises the first failed stream's error.

    Threads are sufficient: the driver releases the interpreter's lock while waiting, and each query returns
    one row, so the client has almost nothing to do.
    """
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


def _run(system: SystemUnderTest, by: NodePort, scans: NodeScans, size: int, _form: str) -> Reading:
    """One window: each stream runs its queries by that port. Raises PlacementNotProven for misplaced
    lookups.
    """
    settings, database = system.settings, system.dataset.database
    with connect(system.server) as beside, ExitStack() as opened:
        streams = [opened.enter_context(connect(by.server, database)) for _ in range(size)]
        for connection in streams:
            _require_arrival(connection, by)
        before = buffer_pool.lookups(beside)
        query = reporting_query(settings.rows)
        ran = run_streams(streams, query, settings.queries_per_stream, settings.timeout_s)
        looked = increase(buffer_pool.lookups(beside), before)
    figures = {MISPLACED.name: _require_side(settings, looked)}
    if scans.ratio is not None:
        figures[REMOTE_SCAN.name] = scans.ratio
    return streams_reading(ran, figures, {"page_lookups": asdict(looked)})


def _obstacles(
    connection: pyodbc.Connection, settings: ReportingStreams, dataset: Dataset
) -> Iterator[Obstacle]:
    """Permission to read and empty the buffer pool, and memory for the table on half of the nodes."""
    permissions = server.read_permissions(connection)
    try:
        server.require_state(permissions, "SQL Server")
    except PrivilegeMissing as error:
        yield Obstacle(error.what, error.fix or "")
        return
    if permissions.sysadmin:
        yield from _memory_obstacles(connection, settings)


def _prepare(system: SystemUnderTest) -> Document:
    """Create both tables in SQL Server unless they exist."""
    system.say("making the reporting tables")
    database, rows = system.dataset.database, system.settings.rows
    with connect(system.server, statement_timeout_s=system.settings.timeout_s) as connection:
        changed = tran_stats.prepare(connection, database, rows)
    return {
        "database": database,
        "rows": rows,
        "dimensions": tran_stats.DIMENSIONS,
        "changed": changed,
        "generated": True,
    }


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """Warm one node through its port, and prove the placement of every page and connection."""
    settings, database = system.settings, system.dataset.database
    own, away = _memory_nodes(system)
    with connect(own.server, database, statement_timeout_s=settings.timeout_s) as connection:
        _require_arrival(connection, own)
        _require_room(connection, own.node, settings)
        pages = _warmed(system, connection, own.node)
    with connect(away.server) as connection:
        _require_arrival(connection, away)
    system.say("scanning from either memory node")
    warm, limit_s = tran_stats.WARM[0], settings.timeout_s
    scans = scan_from_both(own, away, database, warm, rows=settings.rows, timeout_s=limit_s)
    streams = own if settings.placement == "local" else away
    system.record("workload", _evidence(settings.placement, own, streams, pages, scans))
    yield partial(_run, system, streams, scans)


def reporting_query(rows: int) -> Query:
    """The published query, with its expected number of groups for a table of that many rows."""
    groups = tran_stats.groups(rows)
    return Query(tran_stats.REPORT, groups, "result", workload="reporting_streams", size=rows, form="report")


def _memory_nodes(system: SystemUnderTest) -> tuple[NodePort, NodePort]:
    """The memory node that has the pages, and another one. Raises PlacementNotProven."""
    with connect(system.server) as connection:
        nodes = buffer_pool.sqlos_nodes(connection)
    if len(nodes) < 2:
        raise PlacementNotProven(
            f"{system.vm}, arm {system.arm}: SQL Server sees one memory node, so nothing in it is remote.",
            fix="Use arms with two vNUMA nodes on two host nodes.",
        )
    first, last = (
        replace(system.server, port=port, instance="") for port in ports_of(system.server, system.settings)
    )
    return NodePort(min(nodes), first), NodePort(max(nodes), last)


def ports_of(server: SqlServer, settings: ReportingStreams) -> tuple[int, ...]:
    """The two mapped ports: the inventory's for this VM, else the study's."""
    return server.node_ports[:2] if len(server.node_ports) > 1 else settings.ports


def _require_arrival(connection: pyodbc.Connection, by: NodePort) -> None:
    """Raise PlacementNotProven unless connections by that port have affinity to that node."""
    node, port = server_configuration.arrival(connection)
    if node != by.node:
        raise PlacementNotProven(
            f"A connection to port {by.server.port} (local_tcp_port {port}) has affinity to memory "
            f"node {node}, not {by.node}.",
            fix=f"Check the port mapping in {server_configuration.BY_HAND}, "
            "and the error log from SQL Server's start.",
        )


def _require_room(connection: pyodbc.Connection, node: int, settings: ReportingStreams) -> None:
    """Raise PlacementNotProven when the table exceeds SQL Server's memory on that node."""
    room_mb = buffer_pool.target_kb(connection).get(node, 0) // 1024
    if room_mb * 1.048576 < settings.table_mb:
        raise PlacementNotProven(
            f"The table of about {settings.table_mb:,} MB does not fit memory node {node}, on which SQL "
            f"Server may take {room_mb:,} MB.",
            fix="Lower workload.scale_factor, or give the VM more memory.",
        )


def _memory_obstacles(connection: pyodbc.Connection, settings: ReportingStreams) -> Iterator[Obstacle]:
    """An arm splits the memory over at least two nodes, whatever the VM has now."""
    target = buffer_pool.target_kb(connection)
    room_mb = sum(target.values()) // max(2, len(target)) // 1024
    if room_mb * 1.048576 < settings.table_mb:
        yield Obstacle(
            f"The table of about {settings.table_mb:,} MB ({settings.rows:,} rows) does not fit one memory "
            f"node: SQL Server may take about {room_mb:,} MB there.",
            f"Lower workload.scale_factor to {max(room_mb / 9000, 0.0001):.3g} or less, or give the VM "
            "more memory.",
        )


def _warmed(system: SystemUnderTest, connection: pyodbc.Connection, node: int) -> Mapping[int, int]:
    """Pages by memory node after scans through that node's port. Raises PlacementNotProven."""
    system.say(f"warming memory node {node}")
    if buffer_pool.pages_by_node(connection, tran_stats.TABLES):
        buffer_pool.drop_clean_buffers(connection)  # this boot created the tables, or an earlier attempt
    run_all(connection, tran_stats.WARM)
    pages = buffer_pool.pages_by_node(connection, tran_stats.TABLES)
    total = sum(pages.values())
    if not total:
        raise MeasurementFailed(
            "After the warm-up no page of the tables is in the buffer pool.",
            fix="Check whether max server memory is large enough for them.",
        )
    wrong = 100 * (total - pages.get(node, 0)) / total
    if wrong > system.settings.misplaced_percent:
        raise PlacementNotProven(
            f"{system.vm}, arm {system.arm}: {wrong:.2f}% of the tables' {total:,} pages are on memory "
            f"nodes other than {node} ({_by_node(pages)}); at most "
            f"{system.settings.misplaced_percent:g}% may be.",
            fix="Check free memory by node (sys.dm_os_memory_nodes), and trace flags 834 and 8015.",
        )
    return pages


def _require_side(settings: ReportingStreams, looked: buffer_pool.Lookups) -> float:
    """The share of lookups on the wrong node, in percent. Raises PlacementNotProven for too many."""
    if looked.total <= 0:
        raise MeasurementFailed(
            "The Buffer Node counters did not count a single page lookup while the streams ran.",
            fix="Check the counters in sys.dm_os_performance_counters.",
        )
    wrong, side = (looked.remote, "remote") if settings.placement == "local" else (looked.local, "local")
    percent = 100 * wrong / looked.total
    if percent > settings.misplaced_percent:
        raise PlacementNotProven(
            f"With placement {settings.placement}, {percent:.2f}% of {looked.total:,} page lookups were "
            f"{side}; at most {settings.misplaced_percent:g}% may be.",
            fix=(
                "Check whether something else uses this SQL Server, or pages were read again on the other "
                "node."
            ),
        )
    return percent


def _evidence(
    placement: str, own: NodePort, streams: NodePort, pages: Mapping[int, int], scans: NodeScans
) -> dict[str, object]:
    """What was proven about this boot, for the report."""
    megabytes = sum(pages.values()) * buffer_pool.PAGE_KB / 1024
    return {
        "placement": placement,
        "pages on memory node": own.node,
        "streams on memory node": streams.node,
        "port of the pages": own.server.port,
        "port of the streams": streams.server.port,
        "pages by memory node": _by_node(pages),
        "tables in the buffer pool": f"{megabytes:,.0f} MB",
        "scan of the pages": scans.words,
        "cross-node cost matrix": COST_MATRIX,
    }


def _by_node(pages: Mapping[int, int]) -> str:
    return ", ".join(f"node {node}: {count:,}" for node, count in sorted(pages.items()))


WORKLOAD = Workload(settings=ReportingStreams, obstacles=_obstacles, prepare=_prepare, bench=_bench)
