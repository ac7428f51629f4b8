"""Why a Kerberos login failed, in one sentence with the next command, the same for every driver."""

from __future__ import annotations

import re

from vnuma.errors import LoginRefused
from vnuma.sqlserver.client.failures import natives, sentence
from vnuma.sqlserver.client.gss import Said, ask_for_ticket
from vnuma.sqlserver.client.odbc import pyodbc

_KINIT = (
    "kinit USER@REALM, then klist. For runs overnight let the library use a keytab: "
    "export KRB5_CLIENT_KTNAME=KEYTAB"
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
"""By the error's place in Kerberos' table: RFC 4120 7.5.9 below 128, MIT's own above.
https://web.mit.edu/kerberos/krb5-latest/doc/appdev/refs/macros/index.html"""
_NO_REALM = {68, 154, 220}
"""KDC_ERR_WRONG_REALM, KRB5_REALM_UNKNOWN, KRB5_REALM_CANT_RESOLVE."""


_LOGIN_FAILED = 18456
_WINDOWS_ACCOUNT = re.compile(r"['\"]([^'\"\\]+\\[^'\"]+)['\"]")
"""As that message names it, in languages that quote with either sign."""


def why_no_ticket(where: str, spn: str) -> LoginRefused | None:
    """Ask the KDC as the driver did, and say what it refuses. None where it refuses nothing."""
    said = ask_for_ticket(spn)
    return _in_words(where, spn, said) if said else None


def ticket_refused(where: str, spn: str, why: str) -> LoginRefused:
    """The KDC gives a ticket, and the server does not take it: it has another key, say."""
    return LoginRefused(
        f"{where}: SQL Server refuses the Kerberos ticket for {spn}: {why}.",
        fix=f"setspn -Q {spn} names the account whose key the ticket has: SQL Server must run as that one, "
        "with its present password; and its clock must be right (timedatectl, w32tm /query /status).",
    )


def unknown_account(where: str, error: pyodbc.Error, *, tickets: bool) -> LoginRefused | None:
    """Message 18456 for a Windows account; None for any other account, and other messages.

    With `tickets` the account came without a password. An anonymous login is no account: it is what arrives
    where no ticket was passed on.
    """
    why = sentence(error)
    found = _WINDOWS_ACCOUNT.search(why)
    if _LOGIN_FAILED not in natives(error) or found is None or found[1].upper().startswith("NT "):
        return None
    account = found[1]
    quoted = "[" + account.replace("]", "]]") + "]"
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


def _in_words(where: str, spn: str, said: Said) -> LoginRefused:
    if said.expired:
        what, fix = "the ticket has expired", _KINIT
    elif said.code in _NO_REALM or "krbtgt/" in said.words:  # the KDC knows no way to another realm
        what, fix = f"the realm is wrong ({said.words})", "Check default_realm and realms in /etc/krb5.conf."
    elif said.code in _BY_CODE:
        what, fix = (part.format(spn=spn) for part in _BY_CODE[said.code])
    elif said.no_credentials:
        what, fix = "there is no ticket", _KINIT
    else:
        what, fix = said.words, "klist shows the ticket; kvno " + spn + " asks for one."
    return LoginRefused(f"{where}: no Kerberos login: {what}.", fix=fix)
