"""Logins shared by the processes of one run: refusals and sessions.

If each process tried a wrong password, its account would be locked: vCenter's single sign-on does so after
five failures in three minutes, a domain often after three to ten. So refused logins are remembered, without
the password, in a folder that only the run's own processes can read, which also has the session cookies.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from vnuma.errors import AccountRefused, LoginRefused
from vnuma.file_lock import lock_within

WAIT_S = 90.0
"""Time limit for another process's login: three times vCenter's time-out."""

_ROOM = 4096
"""Bytes of an account's file, allocated before its first login, so that it can be written on a full disk."""


class Logins:
    """Refusals and sessions by account, such as `vc01:443 study@vsphere.local`.

    Without a folder, or on a disk that was full from the start, each process remembers only its own: that
    costs a login, but never prevents a VM's restore.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.once = False
        """Whether the first refusal is the last, for read-only commands."""
        self._own: dict[str, dict[str, Any]] = {}

    def require_open(self, account: str) -> None:
        """Raise AccountRefused, with the refusal's text, for an account that must not be tried again."""
        known = self._read(account)
        if known.get("closed"):
            raise AccountRefused(known["what"], fix=known["fix"])

    def refused(self, account: str, error: LoginRefused, most: int, *, password: bool) -> LoginRefused:
        """Count a refusal; returns the error, or AccountRefused after `most` in a row.

        Further attempts can lock the account only if a `password` was tried: then the error says so.
        """
        count = int(self._read(account).get("refused", 0)) + 1
        closed = isinstance(error, AccountRefused) or count >= (1 if self.once else most)
        lest = ", so that the account is not locked" if password else ""
        what = f"{error.what} It was refused {_times(count)}; this run does not try again{lest}."
        final = AccountRefused(what, fix=error.fix)
        self._write(account, {"refused": count, "closed": closed, "what": final.what, "fix": final.fix})
        return final if closed else error

    def accepted(self, account: str) -> None:
        """Forget the refusals of an account that has logged in, as servers do too."""
        if self._read(account).get("refused"):
            self._write(account, {})

    def session(self, account: str) -> dict[str, Any]:
        """The run's session at a vCenter; empty without one."""
        found: dict[str, Any] = self._read(account).get("session", {})
        return found

    def keep_session(self, account: str, session: Mapping[str, Any]) -> None:
        """Share a session with the run's other processes."""
        self._write(account, {"session": dict(session)})

    def sessions(self) -> Iterator[dict[str, Any]]:
        """Every stored session."""
        kept = [self._document(path) for path in self.folder.glob("*.json")] if self.folder else []
        for known in (*kept, *self._own.values()):
            if known.get("session"):
                yield known["session"]

    @contextmanager
    def alone(self, account: str) -> Iterator[None]:
        """A lock for one process at a time; after WAIT_S a waiting process continues without it."""
        if self.folder is None:
            yield
            return
        try:
            lock = os.open(
                self._path(account).with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError:  # a full disk: see the class
            yield
            return
        try:
            lock_within(lock, WAIT_S)
            if not self._path(account).exists():
                self._write(account, {})
            yield
        finally:
            os.close(lock)

    def _read(self, account: str) -> dict[str, Any]:
        return self._own.get(account) or self._document(self._path(account))

    def _path(self, account: str) -> Path:
        return (self.folder or Path()) / f"{hashlib.sha256(account.encode()).hexdigest()[:24]}.json"

    def _document(self, path: Path) -> dict[str, Any]:
        if self.folder is None:
            return {}
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # missing, or cut short by a full disk
            return {}
        return found

    def _write(self, account: str, document: dict[str, Any]) -> None:
        """Write to a file that only this user can read; to memory if no file can be written.

        In place, for which a full disk still has room. Whoever reads meanwhile may miss it, and logs in.
        """
        self._own[account] = document
        if self.folder is None:
            return
        path, text = self._path(account), json.dumps(document).encode().ljust(_ROOM)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                written = os.pwrite(descriptor, text, 0)
                os.ftruncate(descriptor, len(text))
            finally:
                os.close(descriptor)
        except OSError:
            written = 0
        if written == len(text):
            del self._own[account]
        elif not document.get("refused"):  # its old content is no longer valid
            with suppress(OSError):
                path.unlink()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class Sharing:
    """A process that shares its logins with its child processes."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._logins: Logins | None = None

    def logins(self, begin: Callable[[ExitStack], Logins]) -> Logins:
        """The shared logins; `begin` creates them at the first call and may push clean-up to the end."""
        if self._logins is None:
            self._logins = begin(self._ending)
        return self._logins

    def end(self) -> None:
        """Log out and remove the shared files."""
        self._logins = None
        self._ending.close()


_sharing: list[Sharing] = []


def now_sharing() -> Sharing | None:
    """This process's shared logins; None if each connection logs in by itself."""
    return _sharing[-1] if _sharing else None


@contextmanager
def sharing() -> Iterator[Sharing]:
    """Share logins inside a `with`: one for each vCenter and account, logged out at its end."""
    _sharing.append(Sharing())
    try:
        yield _sharing[-1]
    finally:
        _sharing.pop().end()
