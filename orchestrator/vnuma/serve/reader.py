"""What the pages show: one view of the store for all watchers, and parts of reports, each computed once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import Generic, TypeVar

from sqlalchemy import Connection

from vnuma.engine.run.progress import Away, Progress, progress_of, vms_away
from vnuma.errors import StoreError, VnumaError
from vnuma.store import runs
from vnuma.store.change_detection import run_marks
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.tables import utc_now

POLL_S = 2.0
"""How often the store is polled for changes while somebody watches, in seconds."""

REREAD_S = 15.0
"""How often a run in progress is read even without changes, for its time left and heartbeat."""


@dataclass(frozen=True)
class Unreadable:
    """A run that cannot be read, for example because this version does not know its study, and why."""

    run: Run
    why: str
    fix: str | None


@dataclass(frozen=True)
class View:
    """All runs, oldest first, and the VMs away from their baseline. `number` grows with each change."""

    number: int
    read_at: datetime
    runs: tuple[Progress, ...] = ()
    away: tuple[Away, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    trouble: StoreError | None = None
    """Why the store cannot be read now: the view is as of `read_at`."""

    def run(self, name: str) -> Progress | None:
        """The run of that name or id. Raises StoreError for one that cannot be read."""
        every: tuple[Progress | Unreadable, ...] = (*self.runs, *self.unreadable)
        seen = next((one for one in every if name in (one.run.name, str(one.run.id))), None)
        if isinstance(seen, Unreadable):
            raise StoreError(f"Run {seen.run.name} cannot be read: {seen.why}", fix=seen.fix)
        return seen


@dataclass(frozen=True)
class _ReadRun:
    """What was read of a run, and the mark that its rows had then."""

    mark: Hashable
    at: float
    found: Progress | Unreadable


class Reader:
    """Reads the store on request, at most once per `POLL_S`, for all watchers."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._known: dict[int, _ReadRun] = {}
        self._view = View(0, utc_now())
        self._next = 0.0

    def view(self) -> View:
        """The present view; if the store cannot be read, the last one with the reason."""
        with self._lock:
            if time.monotonic() >= self._next:
                self._view = self._refreshed()
                self._next = time.monotonic() + POLL_S
            return self._view

    def _refreshed(self) -> View:
        before = self._view
        try:
            found, away = self._all()
        except StoreError as error:
            if before.trouble and before.trouble.what == error.what:
                return before
            return replace(before, number=before.number + 1, trouble=error)
        readable = tuple(one for one in found if isinstance(one, Progress))
        unreadable = tuple(one for one in found if isinstance(one, Unreadable))
        now = View(before.number, utc_now(), readable, away, unreadable)
        same = replace(now, read_at=before.read_at) == before
        return now if same else replace(now, number=before.number + 1)

    def _all(self) -> tuple[tuple[Progress | Unreadable, ...], tuple[Away, ...]]:
        now, present = time.monotonic(), dict[int, _ReadRun]()
        with self.store.one_connection(), self.store.read() as connection:
            marks = run_marks(connection)
            for run in runs.measuring_runs(connection):
                known, mark = self._known.get(run.id), marks[run.id]
                if known and known.mark == mark and (run.state.ended or now - known.at < REREAD_S):
                    present[run.id] = known
                else:
                    present[run.id] = _ReadRun(mark, now, _found(connection, run))
            away = vms_away(connection)
        self._known = present
        return tuple(item.found for item in present.values()), away


def _found(connection: Connection, run: Run) -> Progress | Unreadable:
    try:
        return progress_of(connection, str(run.id))
    except VnumaError as error:
        return Unreadable(run, error.what, error.fix)


T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    lock: Lock = field(default_factory=Lock)
    made: tuple[Hashable, T] | None = None
    making: Hashable = None
    """The mark of the value being made in the background."""


class SharedCache(Generic[T]):
    """A cache shared by all readers: `most` values by key, least recently used removed first.

    A value stays until its source has changed. Concurrent requests make it once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, mark: Hashable, make: Callable[[], T]) -> T:
        """The value for this mark, cached or made now; concurrent requests for it wait."""
        entry = self._entry(key)
        with entry.lock:
            if entry.made is None or entry.made[0] != mark:
                entry.made = (mark, make())
            return entry.made[1]

    def latest(self, key: Hashable, mark: Hashable, make: Callable[[], T], background: Executor) -> T:
        """The same, but an older value is returned at once while the new one is made in the background.

        If making it fails, the older value is removed, and the next request makes it and gets the error. It
        stays while the store cannot be read: the view says so, and the next request tries again.
        """
        entry = self._entry(key)
        made = entry.made
        if made is None:
            return self.get(key, mark, make)
        if made[0] != mark and entry.making != mark:
            entry.making = mark
            background.submit(self._make_in_background, entry, key, mark, make)
        return made[1]

    def _make_in_background(
        self, entry: _Entry[T], key: Hashable, mark: Hashable, make: Callable[[], T]
    ) -> None:
        try:
            self.get(key, mark, make)
        except Exception as error:  # noqa: BLE001 - the next request tries again and shows it
            if not isinstance(error, StoreError):
                entry.made = None
        finally:
            if entry.making == mark:
                entry.making = None

    def _entry(self, key: Hashable) -> _Entry[T]:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry
