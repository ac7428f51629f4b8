"""Short remote procedure calls from many connections: the network's cost to SQL Server.

Its procedures, and the table that one of them reads, are created once in our database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.domain.study.study import Dataset
from vnuma.errors import MeasurementFailed, SqlFailed
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value, where
from vnuma.sqlserver.database import dataset_sql as sql
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.instance import call_counters
from vnuma.sqlserver.instance.server import read_permissions
from vnuma.workloads.call_volume.callers import Callers, Edge, Window, callers, require_trustworthy
from vnuma.workloads.call_volume.settings import CallVolume
from vnuma.workloads.interface import Bench, Document, Obstacle, Reading, SystemUnderTest, Workload

LAB_RAMP_S, LAB_WINDOW_S = 0.05, 0.3
"""Longest ramp and window on the lab, in seconds of the client.

Each call there takes modelled time, so waiting for more of them gives no more information.
"""

_OWN_CONNECTIONS = 5
"""vnuma's own connections besides the callers."""


@dataclass(frozen=True)
class CallBench:
    """One boot's callers, and a connection that reads the server meanwhile."""

    system: SystemUnderTest
    observer: pyodbc.Connection
    callers: Callers
    schedulers: bool

    def run(self, size: int, form: str) -> Reading:
        """Connect, prove that calls are remote procedure calls, call, and count a window."""
        settings = self.system.settings
        sessions = self.callers.connect(size, call(form), keys=settings.seek_rows, own_session=form == "noop")
        self._require_calls(form, sessions)
        self.callers.go()
        self.callers.watch(self._long(settings.ramp_s, LAB_RAMP_S), self.system.stop_if_asked)
        before = self._edge(form)
        self.callers.watch(self._long(settings.window_s, LAB_WINDOW_S), self.system.stop_if_asked)
        window = Window(size, before, self._edge(form))
        self.callers.stop()
        require_trustworthy(window, judge_client=not self.system.simulated)
        self._record(form, window)
        return Reading(
            elapsed_ms=window.seconds * 1000,
            value=window.rate,
            figures=window.figures(),
            cpu_ms=float(window.after.server.cpu_ms - window.before.server.cpu_ms),
            client_ms=window.client_seconds * 1000,
        )

    def _long(self, seconds: float, on_lab: float) -> float:
        return min(seconds, on_lab) if self.system.simulated else seconds

    def _edge(self, form: str) -> Edge:
        earlier = self.callers.count()
        server = call_counters.counts(self.observer, form, schedulers=self.schedulers)
        at, machine = self.callers.machine()
        return Edge(earlier, server, self.callers.count(), at, machine)

    def _require_calls(self, form: str, sessions: list[int]) -> None:
        """Record what the driver sends, and from where, as the server sees it.

        Raises MeasurementFailed for anything but remote procedure calls.
        """
        for session in sessions:
            kind, text = sent = call_counters.last_input(self.observer, session)
            if not call_counters.is_call_of(form, sent):
                raise MeasurementFailed(
                    f"The driver {self.callers.driver} sent no remote procedure call of dbo.{form}, but "
                    f"a {kind}: {text[:80]}.",
                    fix="Use another ODBC driver (FreeTDS and msodbcsql 17 or 18 are known to call).",
                )
        where = call_counters.endpoint(self.observer, sessions[0])
        self.system.record(
            "workload",
            {
                f"{form}: sent as": f"{kind}: {text}",
                f"{form}: sent from": _from(where),
                f"{form}: sent by": f"{self.callers.where}, {self.callers.driver}",
            },
        )

    def _record(self, form: str, window: Window) -> None:
        """Record the evidence for the window."""
        on_lab = ", not judged: on the lab, calls take simulated time" if self.system.simulated else ""
        found: dict[str, object] = {
            "calls by the server": window.calls,
            "calls by the client": round(window.client_calls),
            "window_s": round(window.seconds, 3),
            "client_window_s": round(window.client_seconds, 3),
            "client_cpus": self.callers.cpus,
            "client headroom": f"{window.headroom:.0f}%{on_lab}",
        }
        if window.schedulers:
            found["schedulers"] = {str(one): round(used, 1) for one, used in window.schedulers.items()}
        self.system.record("workload", {f"{form}: {window.connections} connections": found})


def _obstacles(connection: pyodbc.Connection, settings: CallVolume, dataset: Dataset) -> Iterator[Obstacle]:
    """Unreadable counters, or fewer allowed connections than the study needs."""
    if not read_permissions(connection).reads_state:
        yield Obstacle(
            "The login may not read SQL Server's counters, so calls cannot be counted on the server.",
            "GRANT VIEW SERVER STATE TO the login (since 2022: VIEW SERVER PERFORMANCE STATE).",
        )
    most, limit = max(settings.sizes), call_counters.connection_limit(connection)
    if limit is not None and limit < most + _OWN_CONNECTIONS:
        yield Obstacle(
            f"SQL Server allows {limit} connections (user connections); the study needs "
            f"{most + _OWN_CONNECTIONS}.",
            "Raise the option, or name smaller sizes.",
        )


def _prepare(system: SystemUnderTest) -> Document:
    """Create procedures and table, and count the rows."""
    database, rows = system.dataset.database, system.settings.seek_rows
    with connect(system.server) as connection:
        made = prepare(connection, database, rows)
    return {"database": database, "changed": made, "seek_rows": rows}


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """Callers for this boot."""
    database, client = system.dataset.database, system.client(system.settings.client)
    with connect(system.server, database) as observer, callers(system.server, database, client) as crowd:
        yield CallBench(system, observer, crowd, call_counters.counts_schedulers(observer)).run


def _from(where: call_counters.Endpoint | None) -> str:
    """The origin of the calls, and what it excludes from the measurement."""
    if where is None:
        return "unknown: this login may not see connections"
    if where.same_host:
        return f"{where.client} ({where.transport}), the guest's own host: no network card took part"
    return f"{where.client} ({where.transport})"


TABLE = "dbo.vnuma_item"

_NOOP = """CREATE PROCEDURE dbo.noop @n int AS
SET NOCOUNT ON;
DECLARE @r float = RAND();
SET @r = @r * @n + 1;
SELECT CAST(@@SPID AS int) AS session_id"""
_SEEK = f"""CREATE PROCEDURE dbo.seek @n int AS
SET NOCOUNT ON;
SELECT quantity FROM {TABLE} WHERE id = @n"""

PROCEDURES = {"noop": _NOOP, "seek": _SEEK}
"""The definition of each form's procedure, dbo.FORM."""

_CREATE_TABLE = f"CREATE TABLE {TABLE} (id int NOT NULL PRIMARY KEY CLUSTERED, quantity int NOT NULL)"
_COUNT = f"SELECT COUNT_BIG(*) AS row_count FROM {TABLE} WHERE id BETWEEN 1 AND ? AND quantity = 1 + id % 9"


def call(form: str) -> str:
    """The call in ODBC's notation, with `?` for the value that a caller inserts.

    FreeTDS and Microsoft's driver both send a literal value as a parameter of a remote procedure call by
    name. For a bound parameter the latter uses sp_prepexecrpc, which is another procedure's call.
    """
    return f"{{CALL dbo.{form} (?)}}"


def prepare(connection: pyodbc.Connection, database: str, rows: int) -> bool:
    """Create database, table and procedures unless they exist; leaves the database current.

    Returns whether anything was created. Raises ForeignDatabase for a database that vnuma did not create,
    SqlFailed when the table's content is wrong.
    """
    made = ownership.ensure(connection, database)
    missing = [form for form in PROCEDURES if _object(connection, f"dbo.{form}", "P") is None]
    for form in missing:
        run(connection, PROCEDURES[form])
    filled = _fill(connection, rows)
    return made or bool(missing) or filled


def _fill(connection: pyodbc.Connection, rows: int) -> bool:
    """Insert the rows, unless there are as many, and verify each value."""
    if _object(connection, TABLE, "U") is not None:
        quantity = f"SELECT COL_LENGTH({sql.literal(TABLE)}, N'quantity') AS length"
        if value(connection, quantity) is not None and _count(connection, rows) == rows:
            return False
        run(connection, f"DROP TABLE {TABLE}")
    run(connection, _CREATE_TABLE)
    for offset in range(0, rows, sql.CHUNK_ROWS):
        run(
            connection,
            f"{sql.numbers(offset)} INSERT INTO {TABLE} (id, quantity) "
            f"SELECT 1 + n, 1 + (1 + n) % 9 FROM number WHERE n < {rows}",
        )
    found = _count(connection, rows)
    if found != rows:
        raise SqlFailed(
            f"{where(connection)}: {TABLE} has {found:,} correct rows instead of {rows:,}.",
            fix="Prepare it again; if that fails again, see SQL Server's error log.",
        )
    return True


def _object(connection: pyodbc.Connection, name: str, kind: str) -> object:
    return value(connection, f"SELECT OBJECT_ID({sql.literal(name)}, N'{kind}') AS object_id")


def _count(connection: pyodbc.Connection, rows: int) -> int:
    return query.whole(connection, _COUNT, rows)


WORKLOAD = Workload(settings=CallVolume, obstacles=_obstacles, prepare=_prepare, bench=_bench)
