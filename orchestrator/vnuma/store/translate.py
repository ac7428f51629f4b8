"""Translate database errors into StoreError: what happened, where, and what to do next."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from vnuma.errors import StoreAway, StoreBusy, StoreError, StoreUnwritable
from vnuma.store.place import Place

_RESUME = "then repeat the command, or continue a run that vnuma status lists: vnuma run --resume RUN"
_LOCKED = "stayed locked by another"
_REPORT = "This should not happen: please report it with this message."

_SQLITE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("disk is full", f"Free some space there, {_RESUME}"),
    sqlite3.SQLITE_BUSY: (f"{_LOCKED} process", f"End what holds it, {_RESUME}"),
    sqlite3.SQLITE_LOCKED: (f"{_LOCKED} process", f"End what holds it, {_RESUME}"),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "Restore it from a copy. Do not delete it: it holds VM baselines.",
    ),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "Name another file, or move that one away."),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        "Check owner and mode of the file and its folder, and that its file system is not read-only.",
    ),
    sqlite3.SQLITE_PERM: ("may not be accessed", "Check the owner and mode of the file and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that its folder exists and may be written."),
    sqlite3.SQLITE_IOERR: ("could not be read or written: I/O error", f"Check the disk, {_RESUME}"),
}

_POSTGRESQL: dict[str, tuple[str, str]] = {
    "53100": ("disk is full", f"Free some space on the server, {_RESUME}"),
    "53200": ("server is out of memory", f"Free some memory on the server, {_RESUME}"),
    "53300": ("takes no more connections", f"Raise max_connections or close some, {_RESUME}"),
    "55P03": (f"{_LOCKED} session", f"End what holds it, {_RESUME}"),
    "40P01": ("stopped this transaction to end a deadlock", "Run the command again."),
    "40001": ("stopped this transaction: another changed the same rows", "Run the command again."),
    "28": ("refuses the login", "Check the user and password (PGPASSWORD or ~/.pgpass)."),
    "3D000": ("does not have that database", "Create it: createdb DATABASE"),
    "42501": (
        "does not allow this user to do that",
        "Log in as a member of the store's role DATABASE_writer; for vnuma store init as superuser, or as a "
        "login with CREATEROLE that owns the database. Without roles: grant CREATE and USAGE on its schema.",
    ),
    "25006": ("is read-only", "Name the primary server, not a replica."),
    "57P": ("is shutting down or starting", f"Wait until it is available, {_RESUME}"),
    "08": ("closed the connection", f"Check the network and the server, {_RESUME}"),
    "XX001": ("is damaged", "Restore it from a backup. Do not delete it: it holds VM baselines."),
    "58": ("could not be read or written: I/O error", f"Check the server's disk, {_RESUME}"),
}

_FULL = ("53100", "53200")

_NO_CONNECTION_LEFT = (
    "too many clients",
    "too many connections",
    "connection slots are",
    "no more connections",
)
"""What PostgreSQL 13 to 18 and PgBouncer say to a connection too many (PostgreSQL's proc.c, postinit.c)."""


@contextmanager
def translated(place: Place) -> Iterator[None]:
    """Turn every database error inside into a StoreError that names the place."""
    try:
        yield
    except DBAPIError as error:
        raise explained(place, error.orig or error) from error
    except sqlite3.Error as error:
        raise explained(place, error) from error


def explained(place: Place, cause: BaseException) -> StoreError:
    """A database error as one that names the store and what to do next."""
    if isinstance(cause, sqlite3.Error):
        what, fix = _sqlite(place, cause)
        away = False
    else:
        what, fix = _postgresql(place, cause)
        away = is_away(cause)
    full = what.startswith("The store's")
    kind = StoreAway if away else StoreUnwritable if full else StoreBusy if _LOCKED in what else StoreError
    return kind(f"{what} ({_first_line(cause)}).", fix=fix)


def _sqlite(place: Place, cause: sqlite3.Error) -> tuple[str, str]:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return f"The store {place} refused a row that violates its rules", _REPORT
    if code not in _SQLITE:
        return f"The store {place} refused a statement", _REPORT
    what, fix = _SQLITE[code]
    if code == sqlite3.SQLITE_FULL:
        return f"The store's {what}: {place}, {_free(place.path)}; what was committed is safe", fix
    return f"The store {place} {what}", fix


def _postgresql(place: Place, cause: BaseException) -> tuple[str, str]:
    state = getattr(cause, "sqlstate", None) or _state_of_refusal(str(cause))
    if state is None and _is_about_tls(str(cause)):
        return (
            f"No verified TLS connection to the store {place}",
            "Name its CA (?sslrootcert=FILE), and as host a name in its certificate. TLS on the server: "
            "ssl = on.",
        )
    if state is None:
        return f"The store {place} does not answer", "Check host and port, and that the server is running."
    if state.startswith("23"):
        return f"The store {place} refused a row that violates its rules", _REPORT
    for prefix in (state, state[:3], state[:2]):
        if prefix in _POSTGRESQL:
            what, fix = _POSTGRESQL[prefix]
            return (f"The store's {what}: {place}" if prefix in _FULL else f"The store {place} {what}"), fix
    return f"The store {place} refused a statement", _REPORT


def is_away(cause: BaseException) -> bool:
    """Whether the server is unreachable, starting, stopping or out of connections, or lost the connection."""
    message = str(cause)
    state = getattr(cause, "sqlstate", None) or _state_of_refusal(message)
    if state is None:
        return "FATAL:" not in message and not _is_about_tls(message)
    return state.startswith(("57P", "08", "53300"))


def _is_about_tls(message: str) -> bool:
    return "certificate" in message or "does not support SSL" in message


def _state_of_refusal(message: str) -> str | None:
    """For a refused or broken connection the driver gives no SQLSTATE, only a message."""
    if any(words in message for words in _NO_CONNECTION_LEFT):
        return "53300"
    if 'FATAL:  database "' in message:
        return "3D000"
    if "the database system is" in message:  # starting up, shutting down, in recovery mode
        return "57P03"
    if "FATAL:  terminating connection" in message:  # the server began to stop while this one connected
        return "57P01"
    if "authentication failed" in message or "no password supplied" in message:
        return "28P01"
    if "server closed the connection" in message or "connection is closed" in message:
        return "08006"
    return None


def _first_line(cause: BaseException) -> str:
    lines = str(cause).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _free(path: Path) -> str:
    try:
        return f"{shutil.disk_usage(path.parent).free:,} bytes free"
    except OSError:
        return "free space unknown"
