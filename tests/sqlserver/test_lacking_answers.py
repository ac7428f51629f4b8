"""Views that show less than expected: no row, NULL, text, fewer columns. Never a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product

import pyodbc
import pytest

from tests.support import tds_server as tds
from vnuma.errors import SqlFailed, VnumaError
from vnuma.sqlserver.client import execution, query
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import discover
from vnuma.sqlserver.client.query import UnexpectedAnswer
from vnuma.sqlserver.database import dataset, ownership
from vnuma.sqlserver.instance import (
    buffer_pool,
    call_counters,
    endpoint,
    ready,
    server,
    server_configuration,
)
from vnuma.workloads.log_spinlock import load as log_load
from vnuma.workloads.reporting_streams import tran_stats

READERS: dict[str, Callable[[pyodbc.Connection], object]] = {
    "affinity": server_configuration.read_affinity,
    "affinity by node": server_configuration.cpus_by_memory_node,
    "buffer pool nodes": buffer_pool.sqlos_nodes,
    "buffer pool target": buffer_pool.target_kb,
    "buffer pool pages": lambda c: buffer_pool.pages_by_node(c, ("dbo.t",)),
    "buffer pool lookups": buffer_pool.lookups,
    "call counts": lambda c: call_counters.counts(c, "noop", schedulers=True),
    "last input": lambda c: call_counters.last_input(c, 51),
    "endpoint": lambda c: call_counters.endpoint(c, 51),
    "connection limit": call_counters.connection_limit,
    "design": server.read_sql,
    "error log": server.read_start,
    "execution": lambda c: execution.read(c, "0x1", execution.known_statistics(c), 5),
    "waiting CPUs": log_load.waiting_cpus,
    "rows of a load": lambda c: log_load.count_rows(c, "disk"),
    "room": lambda c: log_load.make_room(c, "vnuma_study", data_mb=1, log_mb=1),
    "log writers": call_counters.read_log_writers,
    "state": lambda c: ownership.require_ours(c, "vnuma_study"),
    "version": ownership.major_version,
    "marker": ownership.read_marker,
    "clocks": ready.read_ticks,
    "guest's CPU": lambda c: ready.guest_cpu_percent(c, ready.Reading(1, 1, 1, 1)),
    "governor": server_configuration.read_governor,
    "edition": server_configuration.has_governor,
    "memory": dataset.committed_target_kb,
    "server": server.read_server,
    "soft-NUMA": server_configuration.read_soft_numa,
    "spinlocks": call_counters.read_counters,
    "ports": server_configuration.read_settings,
    "listening": server_configuration.listening,
    "arrival": server_configuration.arrival,
    "platform": server_configuration.is_linux,
    "topology": server.read_topology,
    "reporting tables": lambda c: tran_stats.prepare(c, "vnuma_study", 10),
    "dataset": lambda c: dataset.verify(c, dataset.DatasetSpec()),
    "use": endpoint.read_use,
    "waits": execution.session_waits,
}
KNOWN = (
    *("cpu_count", "scheduler_count", "max_workers_count", "physical_memory_kb", "committed_kb"),
    *("committed_target_kb", "ms_ticks", "sqlserver_start_time_ms_ticks", "sqlserver_start_time"),
    *("target_kb", "total_cpu_usage_ms", "last_elapsed_time", "socket_count"),
)


INT: tds.Type = "int"
TEXT: tds.Type = "text"


def width(statement: str) -> int:
    """How many columns a SELECT asks for."""
    depth, found = 0, 1
    listed = statement.partition("SELECT ")[2]
    for at, sign in enumerate(listed):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and listed[at:].startswith(" FROM "):
            break
        found += sign == "," and depth == 0
    return found


def _result(kinds: list[tds.Type], *, there: bool | None = None) -> bytes:
    """One row of values or of NULL; None: no row."""
    row = b"" if there is None else tds.row(*[(kind, there) for kind in kinds])
    return tds.columns(*kinds) + row + tds.done(count=int(there is not None))


def nothing(_columns: int) -> bytes:
    """No result at all."""
    return tds.done()


def no_row(wide: int) -> bytes:
    """A result without rows."""
    return _result([TEXT] * wide)


def null(wide: int) -> bytes:
    """A row of NULL."""
    return _result([INT] * wide, there=False)


def text(wide: int) -> bytes:
    """A row of texts, where numbers belong."""
    return _result([TEXT] * wide, there=True)


def number(wide: int) -> bytes:
    """A row of numbers, where texts and moments belong."""
    return _result([INT] * wide, there=True)


def fewer(_wide: int) -> bytes:
    """One column, whatever was asked for."""
    return _result([INT], there=True)


KINDS: tuple[Callable[[int], bytes], ...] = (nothing, no_row, null, text, number, fewer)


@pytest.fixture(scope="module")
def fake() -> Iterator[tds.TdsServer]:
    """A server with scripted answers."""
    running = tds.TdsServer()
    yield running
    running.close()


@pytest.fixture(scope="module")
def opened(fake: tds.TdsServer) -> Iterator[pyodbc.Connection]:
    """A connection to it."""
    with connect(SqlServer("127.0.0.1", fake.port, "sa", "x", discover(), "no")) as connection:
        yield connection


@pytest.mark.parametrize("name", READERS)
def test_an_answer_that_lacks_something_is_an_outcome_or_a_sentence(
    fake: tds.TdsServer, opened: pyodbc.Connection, name: str
) -> None:
    """Whichever statement of a reader is answered in whichever way: a value, or an error of ours."""
    ways = [(*pair, KNOWN) for pair in product(KINDS, KINDS)] + [(kind, kind, ()) for kind in KINDS]
    for first, rest, known in ways:
        asked: list[str] = []

        def answer(statement: str) -> bytes:
            if "sys.all_columns" in statement:
                return tds.texts(*known)  # noqa: B023 - answered before the loop goes on
            asked.append(statement)  # noqa: B023
            return (first if len(asked) == 1 else rest)(width(statement))  # noqa: B023

        fake.answer = answer
        with suppress(VnumaError):
            READERS[name](opened)


def test_a_view_without_known_columns_is_named(fake: tds.TdsServer, opened: pyodbc.Connection) -> None:
    """No statement without columns is sent."""
    asked: list[str] = []

    def answer(statement: str) -> bytes:
        asked.append(statement)
        return tds.texts()

    fake.answer = answer

    with pytest.raises(UnexpectedAnswer, match=r"no column cpu_count.*sys\.dm_os_sys_info") as lacking:
        query.read_one(opened, "sys.dm_os_sys_info", ("socket_count",), needed={"cpu_count": int})

    assert len(asked) == 1
    assert isinstance(lacking.value, SqlFailed)
    assert lacking.value.fix is not None
