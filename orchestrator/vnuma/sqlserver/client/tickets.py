"""Tickets of an account whose keytab the inventory names: got before a login, and anew at half their time.

They are in this process' memory alone: no file on a disk logs in as the account, and a full disk keeps nobody
from logging in. A fork keeps its parent's. The user's own ticket, in the user's cache, is renewed as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client.gss import Said, get_ticket, ticket_left_s, use_cache


@dataclass(frozen=True)
class Keytab:
    """A file with an account's key; without `principal` the account is the file's first."""

    file: str
    principal: str = ""


@dataclass(frozen=True)
class _Ticket:
    cache: str
    until: float
    """From this time on a new one is got: another login may be using this one, which still lasts as long."""


_tickets: dict[Keytab, _Ticket] = {}
_lock = threading.Lock()

_QUIETLY: dict[str, Any] = {
    "stdin": subprocess.DEVNULL,
    "capture_output": True,
    "timeout": 60,
    "check": False,
}
_SHORTEST_S = 1.0
_LOOK_S = 60.0
"""How often to look for a ticket where there is none: somebody may call kinit during a run."""
_numbers = count()


def use_ticket(keytab: Keytab | None) -> Said | None:
    """Let logins of this thread use the keytab's ticket, got now or earlier; None: whatever the user has.

    Returns why the KDC gives none. Raises EnvironmentProblem for a file that cannot be read.
    """
    if keytab is None:
        use_cache(None)
        return None
    with _lock:
        ticket = _tickets.get(keytab)
        if ticket is None or time.time() >= ticket.until:
            file = _readable(keytab.file)
            cache = f"MEMORY:vnuma-{os.getpid()}-{next(_numbers)}"
            found = get_ticket(file, keytab.principal, cache)
            if isinstance(found, Said):
                return found
            ticket = _tickets[keytab] = _Ticket(cache, time.time() + found / 2)
    use_cache(ticket.cache)
    return None


@contextmanager
def renewing() -> Iterator[None]:
    """Renew the user's own ticket at half its time, as `kinit -R` does; one that cannot be expires.

    Whether a renewal succeeded is seen in the ticket alone: a login that then lacks one says so.
    """
    done = threading.Event()

    def renew() -> None:
        left = ticket_left_s()
        while not done.wait(max(left / 2, _SHORTEST_S) if left else _LOOK_S):
            if left and (program := shutil.which("kinit")):
                with suppress(OSError, subprocess.TimeoutExpired):
                    subprocess.run(
                        [program, "-R"],
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=60,
                        check=False,
                    )
            left = ticket_left_s()

    thread = threading.Thread(target=renew, name="ticket", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(_SHORTEST_S)


def _readable(file: str) -> str:
    path = Path(file).expanduser()
    try:
        path.open("rb").close()
    except OSError as error:
        raise EnvironmentProblem(
            f"vnuma_sql.keytab {file} cannot be read: {error.strerror}.",
            fix="Name a keytab that this user can read: docs/sign-in.md says how to make one.",
        ) from error
    return str(path)
