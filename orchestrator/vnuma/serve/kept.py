"""A cache shared by all readers: entries stay until their source has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from vnuma.errors import StoreError

T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    lock: Lock = field(default_factory=Lock)
    made: tuple[Hashable, T] | None = None
    making: Hashable = None
    """The mark of the value being made in the background."""


class Kept(Generic[T]):
    """At most so many values by key, least recently used removed first. Concurrent requests make a value
    once.
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
