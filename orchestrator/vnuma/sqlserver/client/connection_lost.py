"""Tell a failed statement from a lost connection, which FreeTDS does not distinguish."""

from __future__ import annotations

from vnuma.errors import ConnectionDropped, SqlUnreachable, VnumaError
from vnuma.sqlserver.client.deadline import is_cut, server_of
from vnuma.sqlserver.client.failures import sentence, translate
from vnuma.sqlserver.client.odbc import pyodbc


def failure(error: pyodbc.Error, connection: pyodbc.Connection) -> VnumaError:
    """What a driver's error during a statement means. SqlUnreachable: the connection is gone.

    Decided by the driver's code and the connection's socket. The server cannot be asked: while results are
    pending a connection takes no other statement, and a frozen guest would not answer.
    """
    means = translate(error, where(connection))
    if isinstance(means, SqlUnreachable) or is_cut(connection):
        return broken(connection, sentence(error))
    return means


def broken(connection: pyodbc.Connection, how: str) -> SqlUnreachable:
    """The error for a connection that is gone."""
    return SqlUnreachable(
        f"{where(connection)}: the connection broke: {how}.",
        fix="Check whether the guest or SQL Server restarted: see SQL Server's error log.",
    )


def while_measuring(error: SqlUnreachable) -> ConnectionDropped:
    """The same during a measurement, where SQL Server had just answered."""
    return ConnectionDropped(error.what, fix=error.fix)


def where(connection: pyodbc.Connection) -> str:
    """The server's name for messages."""
    return server_of(connection)
