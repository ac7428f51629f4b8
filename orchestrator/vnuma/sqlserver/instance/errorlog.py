"""What SQL Server logged at its start."""

from __future__ import annotations

from vnuma.logs.errorlog import ErrorLog, read_errorlog
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import fetch

# Filter for one line; 0 is the current log, 1 the server's own (not the agent's).
_START = "EXEC sys.sp_readerrorlog 0, 1, N'logical processors'"


def read_start(connection: pyodbc.Connection) -> ErrorLog:
    """Sockets, cores and licensed processors as found at SQL Server's start.

    Empty if the log was cycled since. Raises SqlFailed or PrivilegeMissing: reading needs membership of
    securityadmin, or VIEW ANY ERROR LOG since 2022.
    """
    return read_errorlog("\n".join(str(row[-1]) for row in fetch(connection, _START)))
