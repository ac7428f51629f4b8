"""Logins by the Kerberos ticket that the environment has: how long it lasts, and why a login failed.

vnuma gets and renews no ticket. With KRB5_CLIENT_KTNAME the Kerberos library of the drivers does, and so does
k5start (docs/sign-in.md).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from datetime import UTC, datetime

from vnuma.errors import AccountRefused, LoginRefused
from vnuma.sqlserver.client.failures import natives, sentence
from vnuma.sqlserver.client.odbc import pyodbc

_ANSWER_S = 10
_ENDS = re.compile(r"(\d\d/\d\d/\d\d \d\d:\d\d:\d\d)\s+krbtgt/")
"""In klist's list."""
_LOGIN_FAILED, _DISABLED = 18456, 18470
_WINDOWS_ACCOUNT = re.compile(r"['\"]([^'\"\\]+\\[^'\"]+)['\"]")
"""The account's name in these messages, in either style of quotes."""


def ticket_left_s() -> float | None:
    """How many seconds the user's ticket lasts; 0 or less: expired, None: there is none, or no klist."""
    program = shutil.which("klist")
    if program is None:
        return None
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        listed = subprocess.run(
            [program], env=environment, capture_output=True, text=True, timeout=_ANSWER_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    ends = [
        datetime.strptime(end, "%m/%d/%y %H:%M:%S").replace(tzinfo=UTC).timestamp()
        for end in _ENDS.findall(listed.stdout)
    ]
    return max(ends) - time.time() if ends else None


def no_login(where: str, spn: str, why: str) -> LoginRefused:
    """The error for a login that got no ticket for SQL Server. `why`: the driver's words."""
    left = ticket_left_s()
    if left is not None and left <= 0:
        return LoginRefused(
            f"{where}: no Kerberos login: the ticket has expired.",
            fix="kinit USER@REALM. For runs overnight a keytab: docs/sign-in.md",
        )
    return LoginRefused(
        f"{where}: no Kerberos login ({why}).",
        fix=f"klist shows the ticket (kinit USER@REALM gets one). kvno {spn} says what the KDC refuses: "
        "its clock, the realm, or the SPN, which setspn -S adds.",
    )


def ticket_refused(where: str, spn: str, why: str) -> LoginRefused:
    """The KDC issues a ticket but the server refuses it, for example because its key differs."""
    return LoginRefused(
        f"{where}: SQL Server refuses the Kerberos ticket for {spn}: {why}.",
        fix=f"setspn -Q {spn} names the account whose key the ticket has: SQL Server must run as that one, "
        "with its present password; and its clock must be right (timedatectl, w32tm /query /status).",
    )


def windows_account_refused(where: str, error: pyodbc.Error, *, tickets: bool) -> LoginRefused | None:
    """The error of message 18456 or 18470 for a Windows account; None for other accounts and messages.

    With `tickets` the account used no password. An anonymous login means that no ticket was forwarded.
    """
    why, numbers = sentence(error), natives(error)
    found = _WINDOWS_ACCOUNT.search(why)
    if found is None or found[1].upper().startswith("NT ") or not {_LOGIN_FAILED, _DISABLED} & set(numbers):
        return None
    account = found[1]
    quoted = "[" + account.replace("]", "]]") + "]"
    if _DISABLED in numbers:
        return AccountRefused(
            f"{where}: the login of the Windows account {account} is disabled: {why}.",
            fix=f"Ask the DBA for: ALTER LOGIN {quoted} ENABLE.",
        )
    if not tickets:
        return LoginRefused(
            f"{where}: {account} is a Windows account, which SQL Server takes no password from: {why}.",
            fix="Set kerberos: true in vnuma_sql, and get a ticket: docs/sign-in.md. Or use a SQL login.",
        )
    return LoginRefused(
        f"{where}: the Windows account {account} has no login in SQL Server: {why}.",
        fix=f"Ask the DBA for: CREATE LOGIN {quoted} FROM WINDOWS. "
        f"If it exists: GRANT CONNECT SQL TO {quoted}.",
    )
