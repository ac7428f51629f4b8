"""Why a Kerberos login failed, in one sentence with the next command, alike for all drivers."""

from __future__ import annotations

import os
import re
import shlex

from vnuma.errors import AccountRefused, LoginRefused, SqlUnreachable
from vnuma.sqlserver.client.failures import natives, sentence
from vnuma.sqlserver.client.gss import NO_KDC, Said, ask_for_ticket, use_cache
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.tickets import Keytab, cache_of

_KINIT = (
    "kinit USER@REALM, then klist. For runs overnight name a keytab in the inventory: "
    "vnuma_sql.keytab (docs/sign-in.md)"
)

_CLOCK = 37
_BY_CODE = {
    7: (
        "the KDC knows no service {spn}",
        "setspn -L SQLACCOUNT lists the account's SPNs, setspn -S {spn} SQLACCOUNT adds this one; "
        "vnuma_sql.host must be the name in the SPN.",
    ),
    _CLOCK: (
        "this machine's clock and the KDC's differ too much",
        "timedatectl shows whether this machine's clock is synchronised.",
    ),
    NO_KDC: (
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


def ticket_cache(where: str, keytab: Keytab | None) -> str | None:
    """The cache with the keytab's ticket for `use_cache`; None without a keytab: the environment's.

    Raises LoginRefused where the KDC gives none, SqlUnreachable where no KDC answers, and EnvironmentProblem
    for a file that cannot be read, or without Kerberos' library.
    """
    if keytab is None:
        return None
    found = cache_of(keytab)
    if isinstance(found, str):
        return found
    what, fix = _by_the_inventory(keytab, found)
    kind = SqlUnreachable if found.code == NO_KDC else LoginRefused  # no key was tried
    raise kind(f"{where}: no Kerberos login: {what}.", fix=fix)


def why_no_ticket(where: str, spn: str, keytab: Keytab | None) -> LoginRefused | None:
    """Ask the KDC as the driver did; returns its refusal, or None. Raises what `ticket_cache` raises."""
    use_cache(ticket_cache(where, keytab))
    said = ask_for_ticket(spn)
    if said is None:
        return None
    file = "" if keytab else os.environ.get("KRB5_CLIENT_KTNAME", "").removeprefix("FILE:")
    what, fix = (_by_the_environment(file, said) if file else None) or _in_words(spn, said)
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


def _by_the_inventory(given: Keytab, said: Said) -> tuple[str, str]:
    """Why the inventory's keytab gives no ticket, which klist would not see in this process' memory."""
    file = given.file
    by_hand = f"kinit -k -t {shlex.quote(file)} {shlex.quote(given.principal or 'PRINCIPAL')}"
    if said.code == NO_KDC:
        return (
            f"no KDC answers for the keytab {file} ({said.words})",
            f"Check kdc in /etc/krb5.conf, DNS, and port 88; by hand: {by_hand}",
        )
    if said.code == _CLOCK or _is_of_the_realm(said):
        return _in_words("", said)
    if said.no_credentials and said.code in _NO_TICKET and given.principal:
        return f"the keytab {file} has no key of {given.principal}", f"{_listed(file)}."
    return _of_its_key(file, said) or (
        f"the keytab {file} gives no ticket ({said.words})",
        f"{_listed(file)}; by hand: {by_hand}",
    )


def _by_the_environment(file: str, said: Said) -> tuple[str, str] | None:
    """What is wrong with the keytab that the library gets tickets by; None if it is something else."""
    if said.expired:
        return (
            f"the ticket has expired, and the keytab {file} has no key of its account",
            f"klist shows the ticket's account, {_listed(file)}; kdestroy, and the keytab's first account is "
            "used.",
        )
    if said.no_credentials and said.code in _NO_TICKET:
        check = f"Check that the file exists and is a keytab: {_listed(file)}."
        return f"there is no ticket, and the keytab {file} gives none", check
    return _of_its_key(file, said)


def _of_its_key(file: str, said: Said) -> tuple[str, str] | None:
    if said.code == _NO_CLIENT:
        return f"the KDC does not know the account in the keytab {file} ({said.words})", f"{_listed(file)}."
    if said.code in _WRONG_KEY:
        return (
            f"the key in the keytab {file} is older than the account's password, or not of it",
            f"Make the keytab anew (docs/sign-in.md); {_listed(file)}.",
        )
    return None


def _listed(file: str) -> str:
    return f"klist -k {shlex.quote(file)} lists the keytab's accounts and key versions"


def _is_of_the_realm(said: Said) -> bool:
    return said.code in _NO_REALM or "krbtgt/" in said.words  # the KDC knows no path to another realm


def _in_words(spn: str, said: Said) -> tuple[str, str]:
    if said.expired:
        return "the ticket has expired", _KINIT
    if _is_of_the_realm(said):
        return f"the realm is wrong ({said.words})", "Check default_realm and realms in /etc/krb5.conf."
    if said.code in _BY_CODE:
        what, fix = _BY_CODE[said.code]
        return what.format(spn=spn), fix.format(spn=spn)
    if said.no_credentials:
        return "there is no ticket", _KINIT
    return said.words, f"klist shows the ticket; kvno {spn} asks for one."
