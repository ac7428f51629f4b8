"""The reporting tables: tran_stats and its dimensions, generated in SQL Server itself.

The columns are those of Shea (2012), "Performance impact: the cost of NUMA remote memory access". A row is a
function of its number, so that what the query must return is known beforehand. SELECT ... INTO over a stored
table of numbers may run in parallel (SQL Server 2014 and later) and is logged minimally in a database of
recovery model SIMPLE; the published script inserts row by row.
"""

from __future__ import annotations

from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, run, where
from vnuma.sqlserver.database import ownership

_BLOCK = 10_000
_LAYOUT = "reporting 1"
DIMENSIONS = 40 * 100 * 3 * 3 * 5 * 8
"""Rows of the table of every combination."""
_PERIOD = 600
"""Least common multiple of the periods of the dimensions' values."""

TABLES = ("dbo.tran_stats", "dbo.dimensions")

_NUMBERS = (
    "WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d)) "
    "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n INTO dbo.vnuma_numbers "
    "FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e"
)
_COUNTED = (
    "(SELECT a.n * {block} + b.n + {first} AS i FROM "
    "(SELECT n FROM dbo.vnuma_numbers WHERE n < {blocks}) AS a "
    "CROSS JOIN dbo.vnuma_numbers AS b WHERE a.n * {block} + b.n < {rows}) AS v"
)
_SERVER = "'X580 G' + RIGHT('0' + CAST(v.i % 40 AS varchar(5)), 2)"
_KINDS = "CASE {n} WHEN 0 THEN '{zero}' WHEN 1 THEN '{one}' ELSE '{two}' END"
_TYPE = _KINDS.format(n="{n}", zero="READ-ONLY", one="WRITE-ONLY", two="READ-WRITE")
_STATUS = _KINDS.format(n="{n}", zero="SUCCESS", one="FAILURE", two="ROLLBACK")

REPORT = (
    "SELECT COUNT(*) AS report_rows FROM ("
    "SELECT t2.id_server_config, t2.id_thread_name, t2.id_tran_type, t2.id_tran_status, t2.id_users, "
    "t2.id_cpus, COUNT(*) AS cnt "
    "FROM dbo.tran_stats AS t1 JOIN dbo.dimensions AS t2 "
    "ON t1.server_config = t2.server_config AND t1.thread_name = t2.thread_name "
    "AND t1.tran_type = t2.tran_type AND t1.tran_status = t2.tran_status "
    "AND t1.users = t2.users AND t1.cpus = t2.cpus "
    "GROUP BY t2.id_server_config, t2.id_thread_name, t2.id_tran_type, t2.id_tran_status, t2.id_users, "
    "t2.id_cpus) AS v OPTION (MAXDOP 1)"
)
"""The published reporting query. It returns the number of its groups, see `groups`."""

WARM = (
    "SELECT COUNT_BIG(*) AS scanned, SUM(CAST(resultset_size AS bigint)) AS read_values "
    "FROM dbo.tran_stats OPTION (MAXDOP 1)",
    "SELECT COUNT_BIG(*) AS scanned, SUM(CAST(id_cpus AS bigint)) AS read_values "
    "FROM dbo.dimensions OPTION (MAXDOP 1)",
)
"""Full scans of both tables: each column summed is in every data page."""

_ROWS = (
    "SELECT SUM(p.rows) AS table_rows FROM sys.partitions AS p "
    "WHERE p.object_id = OBJECT_ID(?) AND p.index_id IN (0, 1)"
)


def groups(rows: int) -> int:
    """The number of groups that the reporting query returns for a table of that many rows."""
    return min(rows, _PERIOD)


def prepare(connection: pyodbc.Connection, database: str, rows: int) -> bool:
    """Create both tables unless they exist as recorded; whether this call created them. Idempotent.

    Raises ForeignDatabase for a database that vnuma did not create, ServerError, PrivilegeMissing.
    """
    ownership.ensure(connection, database)
    wanted = {"layout": _LAYOUT, "rows": str(rows)}
    recorded = ownership.read_marker(connection)
    changed = {**recorded, **wanted} != recorded or _counted(connection) != (rows, DIMENSIONS)
    if changed:
        ownership.write_marker(connection, {})
        for statement in statements(rows):
            run(connection, statement)
        _require(connection, rows)
        ownership.write_marker(connection, wanted)
    run(connection, "USE [master]")
    return changed


def statements(rows: int) -> tuple[str, ...]:
    """The statements that create the tables, in order."""
    return (
        *(
            f"IF OBJECT_ID(N'{name}', N'U') IS NOT NULL DROP TABLE {name}"
            for name in (*TABLES, "dbo.vnuma_numbers")
        ),
        _NUMBERS,
        _tran_stats(rows),
        "CREATE CLUSTERED INDEX cix_tran_stats ON dbo.tran_stats (tran_begin)",
        _dimensions(),
        "DROP TABLE dbo.vnuma_numbers",
        "CHECKPOINT",
    )


def _tran_stats(rows: int) -> str:
    begin = "DATEADD(second, v.i % 50, CAST('2012-01-30T19:17:00' AS datetime))"
    return (
        f"SELECT CAST({_SERVER} AS varchar(100)) AS server_config, "
        "(v.i % 5 + 1) * 10 AS users, CAST((v.i % 8 + 1) * 10 AS smallint) AS cpus, "
        f"CAST({_thread('v.i % 100')} AS varchar(20)) AS thread_name, v.i % 50 AS tran_count, "
        f"CAST({_TYPE.format(n='v.i % 3')} AS varchar(20)) AS tran_type, "
        f"CAST({_STATUS.format(n='v.i % 3')} AS varchar(20)) AS tran_status, "
        f"{begin} AS tran_begin, {begin} AS tran_end, CAST(v.i % 100 AS smallint) AS resultset_size, "
        f"CAST('filler' AS char(100)) AS filler INTO dbo.tran_stats FROM {_numbers(rows, first=1)}"
    )


def _dimensions() -> str:
    """Every combination of the six dimensions, counted in mixed radix."""
    return (
        "SELECT v.i % 40 + 1 AS id_server_config, v.i / 40 % 100 + 1 AS id_thread_name, "
        "v.i / 4000 % 3 + 1 AS id_tran_type, v.i / 12000 % 3 + 1 AS id_tran_status, "
        "v.i / 36000 % 5 + 1 AS id_users, v.i / 180000 % 8 + 1 AS id_cpus, "
        f"CAST({_SERVER} AS varchar(100)) AS server_config, "
        f"CAST({_thread('v.i / 40 % 100')} AS varchar(20)) AS thread_name, "
        f"CAST({_TYPE.format(n='v.i / 4000 % 3')} AS varchar(20)) AS tran_type, "
        f"CAST({_STATUS.format(n='v.i / 12000 % 3')} AS varchar(20)) AS tran_status, "
        "(v.i / 36000 % 5 + 1) * 10 AS users, CAST((v.i / 180000 % 8 + 1) * 10 AS smallint) AS cpus "
        f"INTO dbo.dimensions FROM {_numbers(DIMENSIONS, first=0)}"
    )


def _thread(n: str) -> str:
    return f"'VC' + CAST({n} AS varchar(15))"


def _numbers(rows: int, first: int) -> str:
    return _COUNTED.format(block=_BLOCK, blocks=-(-rows // _BLOCK), rows=rows, first=first)


def _counted(connection: pyodbc.Connection) -> tuple[int, int]:
    """Rows of both tables in the catalog; 0 for a missing one."""
    counted = [query.row(connection, _ROWS, Maybe(int), parameters=(name,))[0] for name in TABLES]
    return counted[0] or 0, counted[1] or 0


def _require(connection: pyodbc.Connection, rows: int) -> None:
    found = _counted(connection)
    if found != (rows, DIMENSIONS):
        raise ServerError(
            f"{where(connection)}: {TABLES[0]} and {TABLES[1]} have {found[0]:,} and {found[1]:,} rows "
            f"instead of {rows:,} and {DIMENSIONS:,}.",
            fix="Prepare them again; if that fails again, report it with SQL Server's error log.",
        )
