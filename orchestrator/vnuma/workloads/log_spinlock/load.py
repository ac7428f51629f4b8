"""The published load on the log: two tables, two procedures that insert in a loop, and a common start.

Tables and procedures are those of Adkin (2014), with two differences: a session's number is an argument (its
@@SPID is not allowed in natively compiled procedures, and may repeat), and inserts are counted, not rows.
Source: https://chrisadkin.io/ (NUMA, The LOGCACHE_ACCESS Spinlock and The Best Machine for OLTP Workloads)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from vnuma.errors import MeasurementFailed, PlacementNotProven
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value, where
from vnuma.sqlserver.database.dataset_sql import identifier
from vnuma.sqlserver.instance import call_counters
from vnuma.sqlserver.instance.call_counters import Counters

TABLES = {"disk": "dbo.MyBigTable", "native": "dbo.MyBigTableIm"}
PROCEDURES = {"disk": "dbo.usp_insert", "native": "dbo.usp_insertIm"}
START = "vnuma_start"
"""The application lock, in our database, that sessions wait for."""

ARRIVE_S = 60
"""Time limit for a session's wait, and for all sessions to arrive."""

LEAVE_S = 5.0
"""Time limit for sessions that failed: SQL Server frees the locks of a closed connection later."""

_KEYS = 10_000_000_000
"""Each session's own range of keys."""

_COLUMNS = (
    "c2 datetime NULL DEFAULT (getdate()), "
    "c3 char(111) COLLATE SQL_Latin1_General_CP1_CI_AS NULL DEFAULT ('a'), "
    "c4 int NULL DEFAULT (1), c5 int NULL DEFAULT (2), c6 bigint NULL DEFAULT (42)"
)
_DISK_TABLE = (
    f"CREATE TABLE {TABLES['disk']} (c1 bigint NOT NULL, {_COLUMNS}, "
    "CONSTRAINT PK_MyBigTable PRIMARY KEY CLUSTERED (c1) WITH (ALLOW_ROW_LOCKS = ON, ALLOW_PAGE_LOCKS = OFF))"
)
_NATIVE_TABLE = (
    f"CREATE TABLE {TABLES['native']} (c1 bigint NOT NULL PRIMARY KEY NONCLUSTERED HASH "
    f"WITH (BUCKET_COUNT = {{buckets}}), {_COLUMNS}) "
    "WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_AND_DATA)"
)
_DISK_PROCEDURE = f"""CREATE PROCEDURE {PROCEDURES["disk"]} @session bigint, @inserts int
AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @i int = 0, @k bigint = @session * {_KEYS};
    WHILE @i < @inserts
    BEGIN
        INSERT INTO {TABLES["disk"]} (c1) VALUES (@k), (@k + 1);
        SET @k += 2;
        SET @i += 1;
    END;
END"""
_NATIVE_PROCEDURE = f"""CREATE PROCEDURE {PROCEDURES["native"]} @session bigint, @inserts int
WITH NATIVE_COMPILATION, SCHEMABINDING, EXECUTE AS OWNER
AS
BEGIN ATOMIC WITH (TRANSACTION ISOLATION LEVEL = SNAPSHOT, LANGUAGE = N'us_english')
    DECLARE @i int = 0, @base bigint = @session * {_KEYS};
    WHILE @i < @inserts
    BEGIN
        INSERT INTO {TABLES["native"]} (c1) VALUES (@base + @i);
        SET @i += 1;
    END;
END"""
_WAITING = (
    "SELECT r.session_id, s.cpu_id FROM sys.dm_exec_requests AS r "
    "JOIN sys.dm_os_schedulers AS s ON s.scheduler_id = r.scheduler_id "
    "WHERE r.database_id = DB_ID() AND r.wait_type = N'LCK_M_S'"
)
_RELEASE = f"EXEC sys.sp_releaseapplock @Resource = N'{START}', @LockOwner = N'Session'"
_FILE = "SELECT name, size / 128 AS mb FROM sys.database_files WHERE type = ? ORDER BY file_id"

_LOOK_S = 0.02


Ran = tuple[datetime, datetime]
"""When one session started and ended, by SQL Server's clock."""


def make(form: str, inserts: int) -> Iterator[str]:
    """The form's table, empty, and its procedure; existing ones are dropped first."""
    yield f"IF OBJECT_ID(N'{PROCEDURES[form]}', N'P') IS NOT NULL DROP PROCEDURE {PROCEDURES[form]}"
    yield f"IF OBJECT_ID(N'{TABLES[form]}', N'U') IS NOT NULL DROP TABLE {TABLES[form]}"
    if form == "disk":
        yield _DISK_TABLE
        yield _DISK_PROCEDURE
    else:
        yield _NATIVE_TABLE.format(buckets=buckets(inserts))
        yield _NATIVE_PROCEDURE


def buckets(rows: int) -> int:
    """Buckets of the hash index: the smallest power of two for one per row, at most 2^30."""
    return min(1 << max(rows - 1, 1023).bit_length(), 1 << 30)


def session_batch(form: str, session: int, inserts: int) -> str:
    """What one session sends: wait for the start, insert, give the lock back, and return the times."""
    return (
        "SET NOCOUNT ON; DECLARE @granted int, @began datetime2(7), @ended datetime2(7); "
        f"EXEC @granted = sys.sp_getapplock @Resource = N'{START}', @LockMode = N'Shared', "
        f"@LockOwner = N'Session', @LockTimeout = {ARRIVE_S * 1000}; "
        "IF @granted < 0 THROW 50001, N'The start was not given.', 1; "
        "SET @began = SYSUTCDATETIME(); "
        f"EXEC {PROCEDURES[form]} @session = {session}, @inserts = {inserts}; "
        f"SET @ended = SYSUTCDATETIME(); {_RELEASE}; "
        "SELECT @began AS began, @ended AS ended"
    )


def hold_start(connection: pyodbc.Connection) -> None:
    """Take the lock that sessions wait for. Raises MeasurementFailed when somebody else has it."""
    granted = value(
        connection,
        f"DECLARE @granted int; EXEC @granted = sys.sp_getapplock @Resource = N'{START}', "
        f"@LockMode = N'Exclusive', @LockOwner = N'Session', @LockTimeout = {LEAVE_S * 1000:.0f}; "
        "SELECT @granted AS granted",
    )
    if granted < 0:
        raise MeasurementFailed(
            f"{where(connection)}: sessions of another load still run (application lock {START}: {granted}).",
            fix="Check whether another study is running in this database.",
        )


def release_sessions(connection: pyodbc.Connection) -> None:
    """Release all waiting sessions at once."""
    run(connection, _RELEASE)


def waiting_cpus(connection: pyodbc.Connection) -> dict[int, int]:
    """The sessions that wait for the start, with their CPUs."""
    return dict(query.rows(connection, _WAITING, int, int))


def count_rows(connection: pyodbc.Connection, form: str) -> int:
    """Rows in the form's table, since a natively compiled procedure does not preserve @@ROWCOUNT."""
    return query.whole(connection, f"SELECT COUNT_BIG(*) AS counted FROM {TABLES[form]}")


def set_durability(connection: pyodbc.Connection, database: str, durability: str) -> None:
    """Force delayed durability on every transaction of our database, or forbid it."""
    wanted = "FORCED" if durability == "delayed" else "DISABLED"
    run(connection, f"ALTER DATABASE {identifier(database)} SET DELAYED_DURABILITY = {wanted}")


def keep_log(connection: pyodbc.Connection, database: str) -> None:
    """Full recovery, so that no checkpoint truncates the log during a load."""
    run(connection, f"ALTER DATABASE {identifier(database)} SET RECOVERY FULL")
    run(connection, f"BACKUP DATABASE {identifier(database)} TO DISK = N'NUL'")


def truncate_log(connection: pyodbc.Connection, database: str) -> None:
    """Back the log up to NUL, which empties it. Only for our own database."""
    run(connection, f"BACKUP LOG {identifier(database)} TO DISK = N'NUL'")


def make_room(connection: pyodbc.Connection, database: str, *, data_mb: int, log_mb: int) -> None:
    """Grow the database's data and log files to that size in advance, so that they do not grow
    during a load.
    """
    for kind, wanted in ((0, data_mb), (1, log_mb)):
        name, size = query.row(connection, _FILE, str, int, parameters=(kind,))
        if size < wanted:
            quoted = name.replace("'", "''")
            run(
                connection,
                f"ALTER DATABASE {identifier(database)} MODIFY FILE (NAME = N'{quoted}', SIZE = {wanted}MB)",
            )


@dataclass(frozen=True)
class Loaded:
    """A load's duration by SQL Server's clock, the counters meanwhile, and its sessions' CPUs."""

    elapsed_s: float
    longest_session_s: float
    spent: Counters
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Load:
    """A planned load: its form, number of sessions, and inserts per session."""

    server: SqlServer
    database: str
    form: str
    sessions: int
    inserts_each: int
    timeout_s: float


def run_load(load: Load, control: pyodbc.Connection, allowed: tuple[int, ...]) -> Loaded:
    """Start every session, release them together, and wait for the last.

    `control` is a connection to the database. The start is an application lock instead of WAITFOR TIME: a
    slow connection cannot be late and shorten the load, and waiting sessions are visible with their CPUs.
    Raises PlacementNotProven when a session runs on a CPU that is not allowed, MeasurementFailed,
    ConnectionDropped.
    """
    hold_start(control)
    with ThreadPoolExecutor(load.sessions, thread_name_prefix="log-load") as pool:
        with _called_off_on_error(control, load.form):
            waiting = [pool.submit(_session, load, number) for number in range(1, load.sessions + 1)]
            cpus = _all_arrived(control, waiting)
            _require_on(cpus, allowed)
            before = call_counters.read_counters(control)
        release_sessions(control)
        ran = [session.result() for session in waiting]
    spent = call_counters.difference(before, call_counters.read_counters(control))
    if call_counters.was_cleared(spent):
        raise MeasurementFailed(
            "SQL Server's counters were cleared while the load ran, so no difference can be taken.",
            fix="Stop whatever calls DBCC SQLPERF (..., CLEAR) on this instance.",
        )
    window = max(ended for _, ended in ran) - min(began for began, _ in ran)
    longest = max(ended - began for began, ended in ran)
    return Loaded(window.total_seconds(), longest.total_seconds(), spent, cpus)


def _session(load: Load, number: int) -> Ran:
    """One session, on a connection of its own."""
    batch = session_batch(load.form, number, load.inserts_each)
    # All sessions log in at once, and logins to one server take turns.
    in_turn_s = 5 + load.sessions / 5
    with connect(load.server, load.database, in_turn_s, load.timeout_s + ARRIVE_S) as connection:
        began, ended = query.row(connection, batch, query.moment, query.moment)
    return began, ended


@contextmanager
def _called_off_on_error(control: pyodbc.Connection, form: str) -> Iterator[None]:
    """After an error before the start, release the waiting sessions, without a procedure to run."""
    try:
        yield
    except BaseException:
        run(control, f"DROP PROCEDURE {PROCEDURES[form]}")
        release_sessions(control)
        raise


def _all_arrived(control: pyodbc.Connection, sessions: list[Future[Ran]]) -> tuple[int, ...]:
    """The CPU of each session, once all wait. Raises the error of one of them, or MeasurementFailed."""
    deadline = time.monotonic() + ARRIVE_S / 2
    while True:
        cpus = waiting_cpus(control)
        if len(cpus) >= len(sessions):
            return tuple(cpu for _session, cpu in sorted(cpus.items()))
        for session in sessions:
            if session.done():
                session.result()
        if time.monotonic() > deadline:
            raise MeasurementFailed(
                f"Only {len(cpus)} of {len(sessions)} sessions had arrived after {ARRIVE_S / 2:.0f} s.",
                fix="Check whether something limits connections, workers or memory on this SQL Server.",
            )
        time.sleep(_LOOK_S)


def _require_on(cpus: tuple[int, ...], allowed: tuple[int, ...]) -> None:
    strangers = sorted(set(cpus) - set(allowed))
    if strangers:
        raise PlacementNotProven(
            f"Sessions run on CPU {', '.join(map(str, strangers))}, outside the process affinity.",
            fix="Check whether one of your resource pools has its own affinity.",
        )
