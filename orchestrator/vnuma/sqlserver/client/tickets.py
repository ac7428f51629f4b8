"""Tickets of an account whose keytab the inventory names: got before a login, and anew at half their time.

They are in this process' memory alone: no file on a disk logs in as the account, and a full disk keeps nobody
from logging in. A fork keeps its parent's.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client.gss import Said, get_ticket, use_cache


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
