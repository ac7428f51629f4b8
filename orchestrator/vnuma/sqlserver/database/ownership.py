"""Which database is ours: no other is ever written to or dropped."""

from __future__ import annotations

from collections.abc import Mapping

from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, run, value, where
from vnuma.sqlserver.database import dataset_sql as sql

_PRODUCT = ("product", "vnuma")
_SYSTEM = frozenset({"master", "model", "msdb", "tempdb", "resource"})


class ForeignDatabase(EnvironmentProblem):
    """The database exists, and vnuma did not create it."""


def state(connection: pyodbc.Connection, database: str) -> str | None:
    """The database's state, such as ONLINE or RECOVERING; None if there is none."""
    found = value(connection, "SELECT state_desc FROM sys.databases WHERE name = ?", database)
    return None if found is None else str(found)


def require_ours(connection: pyodbc.Connection, database: str) -> bool:
    """Whether the database exists, with our marker in it; False if there is none.

    Raises ForeignDatabase without the marker, ServerError if it is not ONLINE, so that the marker cannot be
    read.
    """
    if database.casefold() in _SYSTEM:
        raise ForeignDatabase(
            f"{database} is a system database of SQL Server.", fix="Name another in dataset.database."
        )
    found = state(connection, database)
    if found is None:
        return False
    if found != "ONLINE":
        raise ServerError(
            f"{where(connection)}: database {database} is {found}, not ONLINE.",
            fix="Wait for its recovery, or see SQL Server's error log.",
        )
    if value(connection, sql.marker_id(database)) is None:
        raise ForeignDatabase(
            f"{where(connection)}: database {database} exists, but vnuma did not create it "
            f"(it has no table {sql.MARKER}). It was not touched.",
            fix="Name another in dataset.database; vnuma creates it.",
        )
    return True


def ensure(connection: pyodbc.Connection, database: str) -> bool:
    """Create the database unless it exists, and use it; whether it was created. Raises as `require_ours`."""
    if require_ours(connection, database):
        run(connection, f"USE {sql.identifier(database)}")
        return False
    create(connection, database)
    return True


def create(connection: pyodbc.Connection, database: str) -> None:
    """Create the database, mark it as ours first of all, and use it."""
    for statement in sql.create_database(database, major_version(connection)):
        run(connection, statement)
        if statement.startswith("CREATE"):
            run(connection, f"USE {sql.identifier(database)}")
            run(connection, sql.CREATE_MARKER)
            run(connection, sql.INSERT_MARKER, *_PRODUCT)


def is_empty(connection: pyodbc.Connection, database: str) -> bool:
    """Whether the database exists, can be used, and has no table, not even our marker."""
    if state(connection, database) != "ONLINE":
        return False
    run(connection, f"USE {sql.identifier(database)}")
    tables = value(connection, "SELECT COUNT(*) AS tables_in_it FROM sys.tables")
    run(connection, "USE [master]")
    return bool(tables == 0)


def drop(connection: pyodbc.Connection, database: str) -> None:
    """Drop a database that the caller has proven to be ours, closing other connections to it."""
    name = sql.identifier(database)
    run(connection, "USE [master]")
    run(connection, f"ALTER DATABASE {name} SET SINGLE_USER WITH ROLLBACK IMMEDIATE")
    run(connection, f"DROP DATABASE {name}")


def major_version(connection: pyodbc.Connection) -> int:
    """12 for SQL Server 2014, 13 for 2016, 14 for 2017 and so on."""
    (version,) = query.row(connection, sql.PRODUCT_VERSION, str)
    major = version.partition(".")[0]
    if not major.isdecimal():
        raise query.unexpected(connection, repr(version), sql.PRODUCT_VERSION)
    return int(major)


def read_marker(connection: pyodbc.Connection) -> dict[str, str]:
    """The content of the current database's marker."""
    return {item: text or "" for item, text in query.rows(connection, sql.READ_MARKER, str, Maybe(str))}


def write_marker(connection: pyodbc.Connection, items: Mapping[str, str]) -> None:
    """Replace the marker's content; the database stays ours."""
    run(connection, sql.CLEAR_MARKER)
    for item, text in items.items():
        run(connection, sql.INSERT_MARKER, item, text)
