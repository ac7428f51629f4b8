"""Oversee a run while plays, and nodes of other sites, work on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from time import monotonic, sleep

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import Target
from vnuma.engine.lease.hours import is_over
from vnuma.engine.lease.supervision import require_supervision
from vnuma.engine.lease.vcenter_retry import HASTE
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.errors import NotAtBaseline
from vnuma.store import runs
from vnuma.store.open import Store
from vnuma.store.rows import Run, StopRequest
from vnuma.store.types import utc_now

Watch = Callable[[Progress], None]

_TICK_S = 1.0


def unwatched(_progress: Progress) -> None:
    """For a node's part: it is watched from the controller."""


@dataclass(frozen=True)
class Work:
    """A run, or a node's part of one, with the VMs that are worked on from here.

    `url` is the store's address, `inventory` where the targets were read.
    """

    store: Store
    url: str
    run: Run
    study: Study
    targets: Mapping[str, Target]
    inventory: Path


@dataclass
class Asked:
    """How often the user asked to stop. Set by a signal handler, which may do nothing else."""

    count: int = 0
    last: float = 0.0
    passed_on: int = field(default=0)
    broken: Exception | None = None
    """An error outside the play while it ran; raised after the play."""


class Elsewhere:
    """The parts of a run that other nodes work on; here, none."""

    def start(self) -> None:
        """Start them. Raises EnvironmentProblem, InputError."""

    def look(self) -> None:
        """Update their state."""

    def is_at_work(self) -> bool:
        """Whether any of them has not ended, as far as known."""
        return False

    def problems(self) -> list[Exception]:
        """Their problems."""
        return []


@dataclass
class Oversight:
    """The duties of a process that supervises a run, or a node's part of it."""

    work: Work
    watch: Watch
    asked: Asked
    elsewhere: Elsewhere
    _shown_next: float = 0.0

    def look(self) -> Progress:
        """The state of the whole run."""
        with self.work.store.read() as connection:
            return progress_of(connection, self.work.run.name)

    def tick(self) -> bool:
        """Once a second: send a heartbeat, pass a stop on, show progress. Returns True to end the play."""
        asked, store, run = self.asked, self.work.store, self.work.run
        try:
            require_supervision(store, run)
            if asked.count > asked.passed_on or is_over(self.work.study, utc_now()):
                heard = asked.count
                with store.write() as connection:
                    runs.request_stop(connection, run.id, StopRequest.NOW)
                asked.passed_on = heard
            self.elsewhere.look()
            self._show()
        except Exception as error:  # noqa: BLE001 - the runner would leave its play alive
            asked.broken = error
            return True
        return asked.count > 1

    def _show(self) -> None:
        """Show progress. Reading that of a thousand VMs takes a while, so it gets a tenth of the time."""
        began = monotonic()
        if self.watch is not unwatched and began >= self._shown_next:
            self.watch(self.look())
            self._shown_next = began + 10 * (monotonic() - began)

    def follow(self) -> list[Exception]:
        """Wait until the work elsewhere has ended; returns its problems, and those of waiting."""
        self.asked.broken = None  # those of the plays, which have ended
        while self.elsewhere.is_at_work() and not self.tick():
            sleep(_TICK_S)
        problems = self.elsewhere.problems()
        return [*problems, self.asked.broken] if self.asked.broken else problems


class _LeftAtOnce(KeyboardInterrupt):
    """The user's third request: the process ends, whatever it waits for."""


_LEAVES = 3

_LEAVE_S = 3.0
"""How long locks, folders and sessions may take to be released after the third request."""

_BOUNCE_S = 1.0
"""A third request within this time of the second is the same one, sent twice."""


@contextmanager
def stop_signals(run: Run, names: Iterable[str]) -> Iterator[Asked]:
    """First Ctrl-C: stop after this iteration; second: stop now, and repeat nothing. Both restore the VMs.

    The third raises NotAtBaseline, with the run's VMs and the command that restores them. If that does not
    end the process in `_LEAVE_S`, it is ended with the same words and exit code.
    """
    asked = Asked()
    left = NotAtBaseline(
        f"{', '.join(names)} may not be at its baseline: {run.name} was left before it was restored.",
        fix=f"vnuma restore --run {run.name}",
    )

    def leave() -> None:
        os.write(2, f"{left}\n".encode())
        os._exit(left.exit_code)

    def ask(_number: int, _frame: object) -> None:
        now = monotonic()
        if asked.count > 1 and now - asked.last < _BOUNCE_S:
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
