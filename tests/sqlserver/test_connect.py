"""Logging in, and what its failures are called."""

from __future__ import annotations

import pytest

from tests.sqlserver.support import server_of
from tests.support.lab import LabHandle
from vnuma.errors import LoginRefused, PrivilegeMissing, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.query import fetch, value


def test_a_login_reaches_master_with_autocommit(server: SqlServer) -> None:
    """Readiness and facts are read in master; no transaction is open."""
    with connect(server) as connection:
        assert value(connection, "SELECT DB_NAME() AS name") == "master"
        assert connection.autocommit


def test_a_connection_is_closed_when_its_block_ends(server: SqlServer) -> None:
    """A connection left open would outlive the power-off of its server."""
    with connect(server) as connection:
        pass

    assert connection.closed


def test_a_wrong_password_is_refused_and_not_shown(shared_lab: LabHandle, server: SqlServer) -> None:
    """The sentence names server and next step, never the password."""
    wrong = server_of(shared_lab, password="not-the-password}{;=")

    with pytest.raises(LoginRefused) as caught, connect(wrong):
        pass

    assert server.where in caught.value.what
    assert "not-the-password" not in str(caught.value)


def test_a_closed_port_is_unreachable(shared_lab: LabHandle) -> None:
    """After a boot this is waited for, so it has a class of its own."""
    with (
        pytest.raises(SqlUnreachable),
        connect(server_of(shared_lab, port=1)),
    ):
        pass


def test_a_missing_database_is_the_servers_answer(server: SqlServer) -> None:
    """It is not a wrong password, although SQL Server calls it a failed login too."""
    with pytest.raises(ServerError) as caught, connect(server, "no_such_database"):
        pass

    assert caught.value.native == 4060


def test_an_unknown_statement_is_an_error_with_its_number(server: SqlServer) -> None:
    """The server's own number reaches the caller."""
    with connect(server) as connection, pytest.raises(ServerError) as caught:
        fetch(connection, "SELECT * FROM dbo.no_such_table")

    assert caught.value.native == 208
    assert not isinstance(caught.value, PrivilegeMissing)
