"""SQL Server's answers to a few harmless statements, as the driver returns them: for recordings only."""

from __future__ import annotations

from typing import Any

from vnuma.sqlserver.client.answers import present
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import DeadlinePassed, each_result, fetch, open_cursor, run

STATEMENTS = (
    "SELECT 1",
    "SELECT 1; SELECT 2",
    "DECLARE @n int; SET @n = 1; SELECT @n",
    "SELECT COUNT_BIG(*) FROM sys.all_objects",
    "EXEC sys.sp_executesql N'SELECT 1'",
    "RAISERROR (N'vnuma', 16, 1)",
)
VIEWS = (
    *("sys.dm_os_sys_info", "sys.dm_os_nodes", "sys.dm_os_memory_nodes", "sys.dm_os_schedulers"),
    *("sys.dm_exec_sessions", "sys.dm_exec_requests", "sys.databases"),
)


def answers(connection: pyodbc.Connection) -> list[dict[str, Any]]:
    """Each statement under SET STATISTICS TIME, with its results and messages in order of arrival."""
    run(connection, "SET LANGUAGE us_english")
    run(connection, "SET STATISTICS TIME ON")
    recorded = [
        {"statement": statement, "answer": _answer(connection, statement)} for statement in STATEMENTS
    ]
    run(connection, "SET STATISTICS TIME OFF")
    return recorded


def columns(connection: pyodbc.Connection) -> dict[str, list[str]]:
    """The columns of the views that the product reads."""
    return {view: _columns(connection, view) for view in VIEWS}


def _columns(connection: pyodbc.Connection, view: str) -> list[str]:
    rows = fetch(connection, f"SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'{view}')")
    return sorted(present(connection, view, [str(name) for (name,) in rows]))


def _answer(connection: pyodbc.Connection, statement: str) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    try:
        with open_cursor(connection) as cursor:
            cursor.execute(statement)
            for result in each_result(cursor):
                seen += _messages(cursor)
                if result.columns:
                    seen.append({"columns": len(result.columns), "rows": len(result.rows())})
                else:
                    seen.append({"rows_affected": cursor.rowcount})
            seen += _messages(cursor)
    except DeadlinePassed:
        seen.append({"error": ["no answer in time"]})
    except pyodbc.Error as error:
        seen.append({"error": [str(part) for part in error.args]})
    return seen


def _messages(cursor: pyodbc.Cursor) -> list[dict[str, Any]]:
    """The present result's messages: the driver starts a new list with each."""
    return [{"state": str(state), "message": str(text)} for state, text in cursor.messages or ()]
