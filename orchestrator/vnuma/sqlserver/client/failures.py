"""Translate ODBC errors into one sentence and the next step."""

from __future__ import annotations

import re

from vnuma.errors import (
    AccountRefused,
    CertificateRejected,
    ConnectionDropped,
    DriverMissing,
    LoginRefused,
    PrivilegeMissing,
    SqlFailed,
    SqlUnreachable,
    VnumaError,
)
from vnuma.sqlserver.client.deadline import is_cut, where
from vnuma.sqlserver.client.odbc import pyodbc

_STATE = re.compile(r"[0-9A-Z]{5}")
_NATIVE = re.compile(r"\((-?\d{1,10})\)(?=\s*(?:\(SQL\w+\)|;\s*\[|$))")
"""The end of a message, since its text may contain a number in parentheses too."""
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_SUFFIX = re.compile(r"\s*\(-?\d+\)\s*(?:\(SQL\w+\))?\s*$")

_LOGIN = {18452, 18456, 18470, 18486, 18487, 18488}
"""Refused logins, whose state is always 1 to the client: only the server's error log has the reason.
https://learn.microsoft.com/sql/relational-databases/errors-events/mssqlserver-18456-database-engine-error
"""
_SETTLED = {18470, 18486, 18487, 18488}
"""The login is disabled or locked, or its password has expired or must be changed: a person has to act."""
_STARTING = {18401, 18451, 18461, 17142, 17187, 6005, 40613}
"""The server is upgrading, in single-user mode, paused, recovering, shutting down or failing over, and did
not check the password; it may answer later.
"""
_DATABASE = {922, 4060, 4064}
"""The database is missing or not yet recovered, and 18456 is a consequence: the password was right."""
_PRIVILEGE = {229, 230, 262, 297, 300, 371, 916, 2571, 3906, 15247}
_FREETDS_CUT = {20003, 20004, 20006, 20017}
"""FreeTDS's own numbers for a lost connection: TDSETIME, TDSEREAD, TDSEWRIT, TDSESEOF.

SQL Server may use the same numbers for its messages; FreeTDS's have SQLSTATE 01000. Source: TDSERRNO in
https://github.com/FreeTDS/freetds/blob/Branch-1_3/include/freetds/tds.h
"""
_KERBEROS = re.compile(r"sspi|kerberos|gssapi", re.IGNORECASE)
_TICKET = re.compile(r"expired|no (?:kerberos )?credentials|credentials? cache|cache is empty", re.IGNORECASE)
_ENTRA = re.compile(r"azure active directory|\bentra\b|\bfedauth", re.IGNORECASE)
_NAME = re.compile(r"'[^']*'|\"[^\"]*\"")
_NO_REASON = re.compile(r"unknown error", re.IGNORECASE)
NO_ENCRYPTION = "refuses to encrypt. Nothing was sent"
NO_ENCRYPTION_FIX = (
    "Something may be intercepting the connection: ask the DBA. To allow an unencrypted, readable "
    "connection: encrypt: no."
)
_NOT_ENCRYPTED = re.compile(r"encryption not supported", re.IGNORECASE)
_CERTIFICATE = re.compile(r"certificate", re.IGNORECASE)
_LIBRARY = re.compile(r"can't open lib|specified driver could not be loaded|data source name not found", re.I)


class ServerError(SqlFailed):
    """SQL Server returned an error; `native` is its message number, None without one."""

    def __init__(self, what: str, *, native: int | None = None, fix: str | None = None) -> None:
        super().__init__(what, fix=fix)
        self.native = native

    def __reduce__(self) -> tuple[object, ...]:
        """Keep `native` when pickled."""
        return (_rebuild, (self.what, self.native, self.fix))


def _rebuild(what: str, native: int | None, fix: str | None) -> ServerError:
    return ServerError(what, native=native, fix=fix)


def sqlstate(error: pyodbc.Error) -> str:
    """The SQLSTATE, empty without one.

    A driver's error has it before its text; pyodbc's own, after.
    """
    return next((part for part in _parts(error) if _STATE.fullmatch(part)), "")


def natives(error: pyodbc.Error) -> tuple[int, ...]:
    """The message numbers from SQL Server or the driver, in order."""
    return tuple(int(number) for number in _NATIVE.findall(_text(error)))


def sentence(error: pyodbc.Error) -> str:
    """The first message, without the drivers' bracketed prefixes."""
    first = re.split(r";\s*\[(?=[0-9A-Z]{5}\])", _text(error), maxsplit=1)[0]
    return " ".join(_SUFFIX.sub("", _PREFIX.sub("", first.strip())).split()).rstrip(".")


def translate(error: pyodbc.Error, where: str) -> VnumaError:
    """Our error for this one. `where` is the server: `sql16:1433`.

    SQLSTATE 08*, HYT*, a cut connection and a starting server become SqlUnreachable, which is waited for
    after a boot. A driver that does not load (01000, IM00*) never does.
    """
    state, numbers, text = sqlstate(error), natives(error), sentence(error)
    if state.startswith("IM") or (state == "01000" and _LIBRARY.search(text)):
        return driver_not_loaded(text)
    by_number = _by_number(where, set(numbers), text)
    if by_number:
        return by_number
    if _KERBEROS.search(text):
        return _no_kerberos(where, text)
    if state.startswith("08") and _NOT_ENCRYPTED.search(text):
        return CertificateRejected(f"{where} {NO_ENCRYPTION}.", fix=NO_ENCRYPTION_FIX)
    if state.startswith("08") and _CERTIFICATE.search(text):
        return CertificateRejected(
            f"{where}: SQL Server's certificate is not trusted: {text}. Nothing was sent.",
            fix="Name its CA in vnuma_sql.ca_file, and set vnuma_sql.host to a name in the certificate.",
        )
    if state == "28000":
        return _refused(LoginRefused, where, text)
    if state.startswith(("08", "HYT")) or (state == "01000" and set(numbers) & _FREETDS_CUT):
        return SqlUnreachable(
            f"{where}: SQL Server does not answer: {text}.",
            fix="Check that the guest is up, the port open and the address right.",
        )
    if 0 in numbers and _NO_REASON.search(text):
        return SqlUnreachable(
            f"{where}: the driver gives no reason; FreeTDS does this when the connection was cut.",
            fix="Check whether the guest or SQL Server restarted: see SQL Server's error log.",
        )
    native = numbers[0] if numbers else None
    number = f" (message {native})" if native is not None else ""
    return ServerError(f"{where}: {text}{number}.", native=native)


def _by_number(where: str, numbers: set[int], text: str) -> VnumaError | None:
    """The meaning of SQL Server's numbers, checked before texts, which may contain names of logins."""
    if numbers & _STARTING:
        return SqlUnreachable(f"{where}: SQL Server does not accept logins yet: {text}.")
    if 4060 in numbers:
        return ServerError(
            f"{where}: {text}.", native=4060, fix="Check that the database exists and is ONLINE."
        )
    if numbers & _LOGIN:
        if _ENTRA.search(_NAME.sub("", text)):
            return LoginRefused(
                f"{where}: SQL Server wants an Entra ID login, which is not supported: {text}.",
                fix="Ask the DBA for a SQL login, or use Kerberos (kerberos: true).",
            )
        return _refused(AccountRefused if numbers & _SETTLED else LoginRefused, where, text)
    return _privilege(where, text) if numbers & _PRIVILEGE else None


def _refused(kind: type[LoginRefused], where: str, text: str) -> LoginRefused:
    return kind(
        f"{where}: SQL Server refused the login: {text}.",
        fix="Check user and password, and that the login is enabled and not locked.",
    )


def counts_against_account(error: pyodbc.Error) -> bool:
    """Whether SQL Server refused a password or an account, as lock-out policies count it.

    A missing Kerberos ticket, or too large a clock difference, does not count.
    """
    numbers = set(natives(error))
    other = _STARTING | _DATABASE
    return bool(numbers & _LOGIN) and not numbers & other


def driver_not_loaded(why: object) -> DriverMissing:
    """The ODBC driver's library exists and cannot be loaded."""
    return DriverMissing(
        f"The ODBC driver could not be loaded: {why}.",
        fix="Debian: apt install tdsodbc. Without root: vnuma setup --odbc wheel.",
    )


def _no_kerberos(where: str, text: str) -> LoginRefused:
    """The error for a missing, expired or unusable ticket."""
    if _TICKET.search(text):
        return ticket_missing(where, text)
    return LoginRefused(
        f"{where}: no Kerberos login: {text}.",
        fix="Check the SPN MSSQLSvc/FQDN:PORT of the server (setspn -L), that vnuma_sql.host is that FQDN, "
        "and both clocks; klist shows the ticket.",
    )


def ticket_missing(where: str, why: str) -> LoginRefused:
    """The error for a missing or expired ticket; a long study needs renewal."""
    return LoginRefused(
        f"{where}: no Kerberos login: {why}.",
        fix="kinit USER@REALM, then klist. For a run overnight, renew it from a keytab before it expires: "
        "k5start -K 60 -f KEYTAB -U, or kinit -k -t KEYTAB USER@REALM from cron.",
    )


def _privilege(where: str, text: str) -> PrivilegeMissing:
    fix = "GRANT VIEW SERVER STATE TO the login; on SQL Server 2022 and later VIEW SERVER PERFORMANCE STATE."
    if "EXECUTE permission" in text or text.startswith("User "):  # 229; 15247 and 2571
        fix = "Ask an administrator for the right, or for membership of sysadmin during the study."
    elif "SHOWPLAN" in text.upper():
        fix = "GRANT SHOWPLAN in the database TO the login."
    elif "CREATE DATABASE" in text.upper():
        fix = "GRANT CREATE ANY DATABASE TO the login, or let an administrator prepare the dataset."
    return PrivilegeMissing(f"{where}: the login lacks a permission: {text}.", fix=fix)


def _text(error: pyodbc.Error) -> str:
    return next((part for part in _parts(error) if not _STATE.fullmatch(part)), str(error))


def _parts(error: pyodbc.Error) -> tuple[str, ...]:
    return tuple(str(part) for part in error.args[:2])


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
