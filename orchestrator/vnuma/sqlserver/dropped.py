"""Was it the statement that failed, or the connection? FreeTDS alone does not say."""

from __future__ import annotations

from vnuma.errors import ConnectionDropped, SqlUnreachable
from vnuma.sqlserver.deadline import deadline
from vnuma.sqlserver.failures import sentence, translate
from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.query import where

CHECK = "SELECT @@ERROR AS error_number, ROWCOUNT_BIG() AS row_count"
ANSWER_S = 30.0
"""For the check after a statement: a server that has just finished one answers at once."""


def connection_lost(error: pyodbc.Error, connection: pyodbc.Connection) -> ConnectionDropped | None:
    """The error to raise when a driver's error means that the connection is gone; None if it works."""
    if not isinstance(translate(error, ""), SqlUnreachable) and _answers(connection):
        return None
    return ConnectionDropped(
        f"{where(connection)}: the connection broke during a measurement: {sentence(error)}.",
        fix="Did the guest or SQL Server restart? See its error log.",
    )


def _answers(connection: pyodbc.Connection) -> bool:
    """Whether the connection still works: FreeTDS says no more than "unknown error" of one that was cut."""
    try:
        with connection.cursor() as cursor, deadline(connection, cursor, ANSWER_S):
            cursor.execute(CHECK).fetchall()
    except pyodbc.Error:
        return False
    return True
