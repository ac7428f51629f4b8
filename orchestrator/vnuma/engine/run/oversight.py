"""Oversee a run while plays, and processes at other sites, work on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Timer, current_thread, main_thread
from time import monotonic, sleep

from vnuma.domain.study.study import Study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.private_folder import waiting_words
from vnuma.engine.access.target import Target
from vnuma.engine.lease.hours import is_over
from vnuma.engine.lease.supervision import require_supervision
from vnuma.engine.lease.vcenter_retry import HASTE
from vnuma.engine.run.progress import Progress, progress_of_part, waiting_for_store
from vnuma.engine.run.run_outcome import restore_command
from vnuma.engine.run.sites import problems_of_sites, waited_for
from vnuma.errors import Interrupted, NotAtBaseline, StoreAway, StoreError, VnumaError
from vnuma.store import runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run, StopRequest
from vnuma.store.tables import utc_now

Watch = Callable[[Progress], None]

_TICK_S = 1.0

AWAY = timedelta(minutes=15)
"""How long a run waits for a store on PostgreSQL that is away: as long as for vCenter."""


@dataclass(frozen=True)
class SupervisedRun:
    """A run, or a site's part of one, with the VMs that are worked on from here.

    `url` is the store's address, `inventory` where the targets were read.
    """

    store: Store
    url: str
    run: Run
    study: Study
    targets: Mapping[str, Target]
    inventory: Inventory


@dataclass
class StopRequests:
    """How often the user asked to stop. Set by a signal handler, which may do nothing else."""

    count: int = 0
    last: float = 0.0
    passed_on: int = field(default=0)
    broken: Exception | None = None
    """An error outside the play while it ran; raised after the play."""


@dataclass
class Oversight:
    """The duties of a process that supervises a run, or a site's part of it."""

    work: SupervisedRun
    watch: Watch
    asked: StopRequests
    _shown_next: float = 0.0
    _seen: Progress | None = None
    _away_until: datetime | None = None
    play_folder: Path | None = None
    """The private folder of the play that runs now."""

    def look(self) -> Progress:
        """The state of the run, or of the site's part of it."""
        self._seen = progress_of_part(self.work.store, self.work.run)
        return self._seen

    def tick(self) -> bool:
        """Once a second: send a heartbeat, pass a stop on, show progress. Returns True to end the play."""
        asked, store, run = self.asked, self.work.store, self.work.run
        try:
            with store.waiting_at_most(_TICK_S):
                require_supervision(store, run)
                if asked.count > asked.passed_on or is_over(self.work.study, utc_now()):
                    heard = asked.count
                    with store.write() as connection:
                        runs.request_stop(connection, run.id, StopRequest.NOW)
                    asked.passed_on = heard
                self._show()
        except StoreAway as error:
            if self._waits_for_store(error):
                return asked.count > 1
            asked.broken = error
            return True
        except Exception as error:  # noqa: BLE001 - the runner would leave its play alive
            asked.broken = error
            return True
        self._away_until = None
        return asked.count > 1

    def _waits_for_store(self, error: StoreError) -> bool:
        """Show that the store is away. Returns whether it may still come back in time."""
        if self._away_until is None:
            self._away_until = utc_now() + AWAY
        if self._seen:
            why = f"{error.what} Giving up at {self._away_until.astimezone():%H:%M:%S}."
            self.watch(waiting_for_store(self._seen, why))
        return utc_now() < self._away_until

    def show_store_away(self, error: StoreError) -> None:
        """Show why a unit of work of the main thread waits."""
        if current_thread() is main_thread():
            self._waits_for_store(error)

    def await_store(self, error: StoreAway) -> None:
        """Pause until the store takes a new connection. Raises the error after AWAY, or on a stop."""
        self.asked.broken = None
        while not self.asked.count and self._waits_for_store(error):
            sleep(_TICK_S)
            try:
                open_store(self.work.url, create=False).disconnect()
            except StoreAway as again:
                error = again
            else:
                self._away_until = None
                return
        raise error

    def _show(self) -> None:
        """Show progress. Reading that of a thousand VMs takes a while, so it gets a tenth of the time."""
        began = monotonic()
        if began >= self._shown_next:
            seen = self.look()
            why = waiting_words(self.play_folder) if self.play_folder else None
            self.watch(waiting_for_store(seen, why) if why else seen)
            self._shown_next = began + 10 * (monotonic() - began)

    def follow(self) -> list[Exception]:
        """Wait until other sites have ended their parts; returns their problems, and those of waiting."""
        self.asked.broken = None  # those of the plays, which have ended
        if self.work.run.site:
            return []
        since = utc_now()
        while self._waits(since) and not self.tick():
            sleep(_TICK_S)
        problems = problems_of_sites(self.work.store, self.work.run)
        return [*problems, self.asked.broken] if self.asked.broken else problems

    def _waits(self, since: datetime) -> bool:
        try:
            with self.work.store.waiting_at_most(_TICK_S), self.work.store.read() as connection:
                return bool(waited_for(connection, self.work.run, since))
        except StoreAway:
            return True  # for which `tick` has a limit
        except StoreError as error:
            self.asked.broken = error
            return False


class _LeftAtOnce(KeyboardInterrupt):
    """The user's third request: the process ends, whatever it waits for."""


_LEAVES = 3

_LEAVE_S = 3.0
"""How long locks, folders and sessions may take to be released after the third request."""

_BOUNCE_S = 1.0
"""A third request within this time of the second is the same one, sent twice."""


def _was_left(run: Run, names: str) -> VnumaError:
    if names:
        return NotAtBaseline(
            f"{names} may not be at its baseline: {run.name} was left before it was restored.",
            fix=restore_command(run),
        )
    return Interrupted(
        f"{run.name} was left. Its VMs belong to other sites, whose processes restore them.",
        fix=f"vnuma status {run.name}",
    )


@contextmanager
def stop_signals(run: Run, names: Iterable[str]) -> Iterator[StopRequests]:
    """First Ctrl-C: stop after this iteration; second: stop now, and repeat nothing. Both restore the VMs.

    SIGTERM and SIGHUP count like it, but only a third Ctrl-C leaves the VMs: a service manager may repeat
    its request. The third raises NotAtBaseline, with the run's VMs and the command that restores them, or
    Interrupted where all VMs belong to other sites. If that does not end the process in `_LEAVE_S`, it is
    ended with the same words and exit code.
    """
    asked, left = StopRequests(), _was_left(run, ", ".join(names))

    def leave() -> None:
        os.write(2, f"{left}\n".encode())
        os._exit(left.exit_code)

    def ask(number: int, _frame: object) -> None:
        now = monotonic()
        if asked.count > 1 and (now - asked.last < _BOUNCE_S or number != signal.SIGINT):
            return
        asked.count, asked.last = asked.count + 1, now
        HASTE.asked = asked.count > 1
        if asked.count == _LEAVES:
            timer = Timer(_LEAVE_S, leave)
            timer.daemon = True
            timer.start()
            raise _LeftAtOnce

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # nohup ignores a hang-up; keep it ignored.
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, ask) for number in heard}
    try:
        yield asked
    except _LeftAtOnce:
        raise left from None
    finally:
        HASTE.asked = False
        for number, handler in previous.items():
            signal.signal(number, handler)
