"""What the processes of one run know together of their logins: refusals, and sessions that they share.

A wrong password that each process tried for itself would lock its account: vCenter's single sign-on does so
after five failures in three minutes, a domain often after three to ten. So a refused login is remembered,
without the password, in a folder that only the run's own processes see. A session's cookie lies there too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from vnuma.errors import AccountRefused, LoginRefused

WAIT_S = 90.0
"""How long another process may take to log in: vCenter's time-out for an answer, three times."""

_LOOK_S = 0.02

_ROOM = 4096
"""Bytes of an account's file, taken before its first login: it can then be written on a full disk too."""


class Logins:
    """Refusals and sessions by account, such as `vc01:443 study@vsphere.local`.

    Without a folder, or with one on a disk that was full from the start, each process knows of its own alone:
    that costs a login, and never keeps a VM from being restored.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.once = False
        """Whether the first refusal is the last: for commands that only look."""
        self._own: dict[str, dict[str, Any]] = {}

    def require_open(self, account: str) -> None:
        """Raise AccountRefused, in the words of the refusal, for an account that is not to be tried again."""
        known = self._read(account)
        if known.get("closed"):
            raise AccountRefused(known["what"], fix=known["fix"])

    def refused(self, account: str, error: LoginRefused, most: int, *, password: bool) -> LoginRefused:
        """Count a refusal. What to raise: the error, or AccountRefused once there were `most` in a row.

        Only where a `password` was tried could further tries lock the account: then the error says so.
        """
        count = int(self._read(account).get("refused", 0)) + 1
        closed = isinstance(error, AccountRefused) or count >= (1 if self.once else most)
        lest = ", so that the account is not locked" if password else ""
        what = f"{error.what} It was refused {_times(count)}; this run does not try again{lest}."
        final = AccountRefused(what, fix=error.fix)
        self._write(account, {"refused": count, "closed": closed, "what": final.what, "fix": final.fix})
        return final if closed else error

    def accepted(self, account: str) -> None:
        """Forget the refusals of an account that has logged in: servers do so too."""
        if self._read(account).get("refused"):
            self._write(account, {})

    def session(self, account: str) -> dict[str, Any]:
        """The session that the run has at a vCenter; empty without one."""
        found: dict[str, Any] = self._read(account).get("session", {})
        return found

    def keep_session(self, account: str, session: Mapping[str, Any]) -> None:
        """Let the run's other processes use a session."""
        self._write(account, {"session": dict(session)})

    def sessions(self) -> Iterator[dict[str, Any]]:
        """Every session that is kept."""
        kept = [self._document(path) for path in self.folder.glob("*.json")] if self.folder else []
        for known in (*kept, *self._own.values()):
            if known.get("session"):
                yield known["session"]

    @contextmanager
    def alone(self, account: str) -> Iterator[None]:
        """One process at a time. One that another keeps waiting for WAIT_S goes on by itself."""
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
            _wait_for(lock)
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
        except (OSError, ValueError):  # not there, or cut short by a full disk
            return {}
        return found

    def _write(self, account: str, document: dict[str, Any]) -> None:
        """To a file that only this user can read; to memory where no file can be written."""
        self._own[account] = document
        if self.folder is None:
            return
        path, text = self._path(account), json.dumps(document).encode().ljust(_ROOM)
        if _replaced(path, text) or _overwritten(path, text):
            del self._own[account]
        elif not document.get("refused"):  # what was known before is not true any more
            with suppress(OSError):
                path.unlink()


def _replaced(path: Path, text: bytes) -> bool:
    """In one piece, whoever reads meanwhile."""
    new = path.with_suffix(f".{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text)
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        return False
    return True


def _overwritten(path: Path, text: bytes) -> bool:
    """In place: a full disk still has the room that the file took before."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.pwrite(descriptor, text, 0) == len(text)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _wait_for(lock: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_S)
        else:
            return


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class Sharing:
    """A process whose logins are shared with those that it starts, for as long as it lasts."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._logins: Logins | None = None

    def logins(self, begin: Callable[[ExitStack], Logins]) -> Logins:
        """What is shared; `begin` makes it at the first call and may push what is to be done at the end."""
        if self._logins is None:
            self._logins = begin(self._ending)
        return self._logins

    def end(self) -> None:
        """Log out and remove what was kept."""
        self._logins = None
        self._ending.close()


_sharing: list[Sharing] = []


def now_sharing() -> Sharing | None:
    """What this process shares its logins by; None where each connection logs in for itself."""
    return _sharing[-1] if _sharing else None


@contextmanager
def sharing() -> Iterator[Sharing]:
    """Share logins for the duration of a `with`: one for each vCenter and account, ended at its end."""
    _sharing.append(Sharing())
    try:
        yield _sharing[-1]
    finally:
        _sharing.pop().end()
