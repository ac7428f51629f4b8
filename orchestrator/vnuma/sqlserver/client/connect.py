"""Connect to SQL Server, and explain a login that fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from vnuma.errors import LoginRefused, SqlUnreachable, VnumaError
from vnuma.sqlserver.client.browser import port_of
from vnuma.sqlserver.client.certificate import Endpoint, why_refused
from vnuma.sqlserver.client.connection_string import connection_string, driver_files
from vnuma.sqlserver.client.deadline import STATEMENT_TIMEOUT_S, Address, Link, known
from vnuma.sqlserver.client.driver_files import install
from vnuma.sqlserver.client.failures import (
    counts_against_account,
    natives,
    sentence,
    translate,
)
from vnuma.sqlserver.client.kerberos import no_login, ticket_refused, windows_account_refused
from vnuma.sqlserver.client.login_deadline import LoginTimeoutError, addresses_of, log_in
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer

MOST_REFUSALS = 3
"""Logins that are refused in a row before the account is left alone: domains lock it after three to ten."""

_NOT_TRUSTED = 18452
"""SQL Server could not accept a ticket.
https://learn.microsoft.com/sql/relational-databases/errors-events/mssqlserver-18452-database-engine-error"""


@contextmanager
def connect(
    server: SqlServer,
    database: str = "master",
    login_timeout_s: float = 5,
    statement_timeout_s: float = STATEMENT_TIMEOUT_S,
) -> Iterator[pyodbc.Connection]:
    """A connection that is closed at the end of the `with`.

    Autocommit is on, since a transaction would add requests to a timing. An account that was refused
    MOST_REFUSALS times in a row is not tried again in this run.

    Raises SqlUnreachable, LoginRefused, CertificateRejected, DriverMissing or ServerError, also for the
    driver's errors inside the `with`; EnvironmentProblem for an unusable CA file.
    """
    if server.logins:
        server.logins.require_open(server.account)

    until, asked = time.monotonic() + login_timeout_s, server

    def prepare() -> tuple[frozenset[Address], str]:
        nonlocal server
        server = located(asked, until - time.monotonic())
        install(driver_files(server))
        return addresses_of(server.host, server.port), connection_string(server, database)

    try:
        connection, sockets = log_in(prepare, login_timeout_s)
    except pyodbc.Error as error:
        raise _not_logged_in(server, asked, error, until - time.monotonic()) from error
    except LoginTimeoutError as error:
        raise SqlUnreachable(
            f"{asked.where}: SQL Server does not answer: {error}.",
            fix="Check whether the guest is up or frozen: its console, and SQL Server's error log."
            + (" Or the KDC is silent: check its port 88." if asked.kerberos else ""),
        ) from error
    if asked.logins:
        asked.logins.accepted(asked.account)
    try:
        with known(connection, Link(asked.where, sockets, statement_timeout_s)):
            yield connection
    except pyodbc.Error as error:
        raise translate(error, asked.where) from error
    finally:
        with suppress(pyodbc.Error):  # the server may be gone already, and nothing is left to close
            connection.close()


def located(server: SqlServer, timeout_s: float) -> SqlServer:
    """The server with its present port. Raises SqlUnreachable."""
    if not server.instance:
        return server
    return replace(server, port=port_of(server.host, server.instance, timeout_s), instance="")


def _not_logged_in(server: SqlServer, asked: SqlServer, error: pyodbc.Error, left_s: float) -> VnumaError:
    """The error for a failed login. FreeTDS gives no reason for refusing a server's encryption, so we check
    it.
    """
    ours = translate(error, asked.where)
    if server.kerberos and _NOT_TRUSTED in natives(error):
        return ticket_refused(asked.where, server.spn, sentence(error))
    if counts_against_account(error):
        return _counted(asked, windows_account_refused(asked.where, error, tickets=server.kerberos) or ours)
    silent = server.driver.kind == "freetds" and natives(error)[:1] == (0,)
    if silent and server.encrypt != "no" and left_s > 0:
        end = Endpoint(server.host, server.port, server.ca_file, verified=server.verified)
        ours = why_refused(end, left_s) or ours
    if server.kerberos and (silent or isinstance(ours, LoginRefused)):
        return no_login(asked.where, server.spn, sentence(error))
    return ours


def _counted(server: SqlServer, error: VnumaError) -> VnumaError:
    """The error for a refused login; AccountRefused at the last one that this run tries."""
    if server.logins is None or not isinstance(error, LoginRefused):
        return error
    with server.logins.alone(server.account):
        return server.logins.refused(server.account, error, MOST_REFUSALS, password=not server.kerberos)
