"""Whose login SQL Server does not know, by the words of message 18456."""

from __future__ import annotations

import pytest

from vnuma.errors import AccountRefused
from vnuma.sqlserver.client.kerberos import windows_account_refused
from vnuma.sqlserver.client.odbc import pyodbc


def _error(words: str, number: int = 18456) -> pyodbc.Error:
    return pyodbc.InterfaceError(
        "28000", f"[28000] [FreeTDS][SQL Server]{words} ({number}) (SQLDriverConnect)"
    )


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        (r"Login failed for user 'EXAMPLE\svc'.", r"[EXAMPLE\svc]"),
        (r'Fehler bei der Anmeldung für den Benutzer "EXAMPLE\svc".', r"[EXAMPLE\svc]"),
        (r"Login failed for user 'EXAMPLE\a]b'.", r"[EXAMPLE\a]]b]"),
    ],
)
def test_the_account_is_quoted_for_t_sql(said: str, quoted: str) -> None:
    """What the DBA runs can be copied, in any language of the server."""
    refused = windows_account_refused("sql16:1433", _error(said), tickets=True)

    assert refused is not None
    assert f"CREATE LOGIN {quoted} FROM WINDOWS" in (refused.fix or "")


@pytest.mark.parametrize("user", ["", "sa", r"NT AUTHORITY\ANONYMOUS LOGON"])
def test_what_is_no_account_of_a_domain_gets_no_login(user: str) -> None:
    """An anonymous login says that no ticket arrived: a login for it would be a hole."""
    assert (
        windows_account_refused("sql16:1433", _error(f"Login failed for user '{user}'."), tickets=True)
        is None
    )


def test_a_disabled_login_is_enabled_not_made() -> None:
    """18470 says that the login exists; asking again does not help."""
    error = _error(r"Login failed for user 'EXAMPLE\svc'. Reason: The account is disabled.", 18470)

    refused = windows_account_refused("sql16:1433", error, tickets=True)

    assert isinstance(refused, AccountRefused)
    assert refused.fix == r"Ask the DBA for: ALTER LOGIN [EXAMPLE\svc] ENABLE."


def test_a_windows_account_with_a_password_needs_a_ticket() -> None:
    """SQL Server takes passwords from its own logins alone, whose names have no backslash."""
    refused = windows_account_refused(
        "sql16:1433", _error(r"Login failed for user 'EXAMPLE\svc'."), tickets=False
    )

    assert refused is not None
    assert "kerberos: true" in (refused.fix or "")
