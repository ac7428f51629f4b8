"""Tickets of an account whose keytab the inventory names: got before a login, and anew at half their time.

They are in this process' memory alone: no file on a disk logs in as the account, and a full disk keeps nobody
from logging in. A fork keeps its parent's. The user's own ticket, in the user's cache, is renewed as well.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from vnuma.errors import EnvironmentProblem
from vnuma.sqlserver.client.gss import NO_KDC, Said, get_ticket, ticket_left_s


@dataclass(frozen=True)
class Keytab:
    """A file with an account's key; without `principal` the account is the file's first."""

    file: str
    principal: str = ""


@dataclass(frozen=True)
class _Ticket:
    cache: str
    renew_at: float
    """From this time on a new one is got: another login may be using this one, which still lasts as long."""


_tickets: dict[Keytab, _Ticket] = {}
_asking: dict[Keytab, threading.Lock] = {}
"""Held while the KDC is asked, so that logins at the same time ask once."""
_ANSWER_S = 10
"""How long the KDC may take. The library gives a silent one a second, then asks the realm's next."""
_SHORTEST_S = 1.0
_LOOK_S = 60.0
"""How often to look for a ticket where there is none: somebody may call kinit during a run."""
_numbers = count()
_RENEWABLE = re.compile(r"krbtgt/\S+\s+renew until (\S+ \S+)")
"""In klist's list."""


def cache_of(keytab: Keytab) -> str | Said:
    """The name of the cache with the keytab's ticket, got now or earlier; or why the KDC gives none.

    A KDC that says nothing counts as unreachable after ten seconds. The library cannot be interrupted: its
    thread goes on waiting, and only logins by the same keytab wait for it. Raises EnvironmentProblem for a
    file that cannot be read, or without the library.
    """
    silent = Said(0, NO_KDC, f"no answer within {_ANSWER_S} s")
    until, asking = time.monotonic() + _ANSWER_S, _asking.setdefault(keytab, threading.Lock())
    if not asking.acquire(timeout=_ANSWER_S):
        return silent
    ticket = _tickets.get(keytab)
    if ticket is not None and time.time() < ticket.renew_at:
        asking.release()
        return ticket.cache
    answer: Future[str | Said] = Future()

    def ask() -> None:
        try:
            answer.set_result(_new_cache(keytab))
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
            answer.set_exception(error)
        finally:
            asking.release()

    threading.Thread(target=ask, name="keytab", daemon=True).start()
    try:
        return answer.result(max(0.0, until - time.monotonic()))
    except TimeoutError:
        return silent


def _new_cache(keytab: Keytab) -> str | Said:
    cache = f"MEMORY:vnuma-{os.getpid()}-{next(_numbers)}"
    found = get_ticket(_readable(keytab.file), keytab.principal, cache)
    if isinstance(found, Said):
        return found
    _tickets[keytab] = _Ticket(cache, time.time() + found / 2)
    return cache


@contextmanager
def renewing() -> Iterator[None]:
    """Renew the user's own ticket at half its time, as `kinit -R` does. One that is not renewable expires.

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


def renewable_s() -> float | None:
    """For how many seconds `kinit -R` can renew the user's own ticket; 0 if it cannot, None if klist fails.

    The library's calls do not tell, and without MIT's programs nothing renews it.
    """
    program = shutil.which("klist") if shutil.which("kinit") else None
    if program is None:
        return 0.0
    try:
        listed = subprocess.run(
            [program],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _RENEWABLE.search(listed.stdout)
    if found is None:
        return 0.0
    until = datetime.strptime(found[1], "%m/%d/%y %H:%M:%S").replace(tzinfo=UTC)
    return max(0.0, until.timestamp() - time.time())


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
