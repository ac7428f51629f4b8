"""call_volume's procedures and the table that one of them reads, created once in our database."""

from __future__ import annotations

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value, where
from vnuma.sqlserver.database import dataset_sql as sql
from vnuma.sqlserver.database import ownership

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
    there = ownership.require_ours(connection, database)
    if there:
        run(connection, f"USE {sql.identifier(database)}")
    else:
        ownership.create(connection, database)
    missing = [form for form in PROCEDURES if _object(connection, f"dbo.{form}", "P") is None]
    for form in missing:
        run(connection, PROCEDURES[form])
    filled = _fill(connection, rows)
    return not there or bool(missing) or filled


def _fill(connection: pyodbc.Connection, rows: int) -> bool:
    """Insert the rows, unless there are as many, and verify each value."""
    if _object(connection, TABLE, "U") is not None:
        if _right(connection) and _count(connection, rows) == rows:
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


def _right(connection: pyodbc.Connection) -> bool:
    """Whether the table has this version's columns."""
    return value(connection, f"SELECT COL_LENGTH({sql.literal(TABLE)}, N'quantity') AS length") is not None


def _count(connection: pyodbc.Connection, rows: int) -> int:
    return answers.whole(connection, _COUNT, rows)
