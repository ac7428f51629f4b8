"""Why a Kerberos login failed, in one sentence with the next command, alike for all drivers."""

from __future__ import annotations

import os
import re
import shlex

from vnuma.errors import AccountRefused, LoginRefused
from vnuma.sqlserver.client.failures import natives, sentence
from vnuma.sqlserver.client.gss import Said, ask_for_ticket
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.tickets import Keytab, use_ticket

_KINIT = (
    "kinit USER@REALM, then klist. For runs overnight name a keytab in the inventory: "
    "vnuma_sql.keytab (docs/sign-in.md)"
)

_BY_CODE = {
    7: (
        "the KDC knows no service {spn}",
        "setspn -L SQLACCOUNT lists the account's SPNs, setspn -S {spn} SQLACCOUNT adds this one; "
        "vnuma_sql.host must be the name in the SPN.",
    ),
    37: (
        "this machine's clock and the KDC's differ too much",
        "timedatectl shows whether this machine's clock is synchronised.",
    ),
    156: (
        "no KDC of the realm can be reached",
        "Check kdc in /etc/krb5.conf, DNS, and port 88; then kinit USER@REALM.",
    ),
}
"""By the error's number in Kerberos' table: RFC 4120 7.5.9 below 128, MIT's own above.
https://web.mit.edu/kerberos/krb5-latest/doc/appdev/refs/macros/index.html
"""
_NO_CLIENT = 6
_WRONG_KEY = {24, 31}
_NO_TICKET = {141, 195}
"""KRB5_CC_NOTFOUND, KRB5_FCC_NOFILE."""
_NO_REALM = {68, 154, 220}
"""KDC_ERR_WRONG_REALM, KRB5_REALM_UNKNOWN, KRB5_REALM_CANT_RESOLVE."""
_LOGIN_FAILED, _DISABLED = 18456, 18470
_WINDOWS_ACCOUNT = re.compile(r"['\"]([^'\"\\]+\\[^'\"]+)['\"]")
"""The account's name in these messages, in either style of quotes."""


def require_ticket(where: str, keytab: Keytab | None) -> None:
    """Let logins of this thread use the keytab's ticket, or without one the caller's.

    Raises LoginRefused where the KDC gives none, and EnvironmentProblem for a file that cannot be read.
    """
    said = use_ticket(keytab)
    if said is not None and keytab is not None:
        raise _no_login(where, "", keytab, said)


def why_no_ticket(where: str, spn: str, keytab: Keytab | None) -> LoginRefused | None:
    """Ask the KDC as the driver did; returns its refusal, or None."""
    said = use_ticket(keytab) or ask_for_ticket(spn)
    if said is None:
        return None
    file = os.environ.get("KRB5_CLIENT_KTNAME", "").removeprefix("FILE:")
    return _no_login(where, spn, keytab or (Keytab(file) if file else None), said)


def _no_login(where: str, spn: str, keytab: Keytab | None, said: Said) -> LoginRefused:
    what, fix = (_of_the_keytab(keytab, said) if keytab else None) or _in_words(spn, said)
    return LoginRefused(f"{where}: no Kerberos login: {what}.", fix=fix)


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


def _of_the_keytab(given: Keytab, said: Said) -> tuple[str, str] | None:
    """What is wrong with the keytab that tickets come from; None if it is something else."""
    keytab = given.file
    listed = f"klist -k {shlex.quote(keytab)} lists the keytab's accounts and key versions"
    if said.expired:
        return (
            f"the ticket has expired, and the keytab {keytab} has no key of its account",
            f"klist shows the ticket's account, {listed}; kdestroy, and the keytab's first account is used.",
        )
    if said.code == _NO_CLIENT:
        return f"the KDC does not know the account in the keytab {keytab} ({said.words})", f"{listed}."
    if said.code in _WRONG_KEY:
        return (
            f"the key in the keytab {keytab} is older than the account's password, or not of it",
            f"Make the keytab anew (docs/sign-in.md); {listed}.",
        )
    if said.no_credentials and said.code in _NO_TICKET:
        if given.principal:
            return f"the keytab {keytab} has no key of {given.principal}", f"{listed}."
        check = f"Check that the file exists and is a keytab: {listed}."
        return f"there is no ticket, and the keytab {keytab} gives none", check
    return None


def _in_words(spn: str, said: Said) -> tuple[str, str]:
    if said.expired:
        return "the ticket has expired", _KINIT
    if said.code in _NO_REALM or "krbtgt/" in said.words:  # the KDC knows no path to another realm
        return f"the realm is wrong ({said.words})", "Check default_realm and realms in /etc/krb5.conf."
    if said.code in _BY_CODE:
        what, fix = _BY_CODE[said.code]
        return what.format(spn=spn), fix.format(spn=spn)
    if said.no_credentials:
        return "there is no ticket", _KINIT
    return said.words, f"klist shows the ticket; kvno {spn} asks for one."
