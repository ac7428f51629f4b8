"""Waits as shares of the elapsed time: by form, and by form and arm."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

from vnuma.store.timed import TimedBatch

_TOP_WAITS = 5


@dataclass(frozen=True)
class WaitShare:
    """A VM's waits in one form: `shares` are wait time over elapsed time, largest first.

    For all arms together if `arm` is None. Includes timed iterations of valid attempts with known waits;
    `shares` is None without any.
    """

    vm: str
    form: str
    shares: tuple[tuple[str, float], ...] | None
    arm: str | None = None

    @property
    def words(self) -> str:
        """The largest ones, as in "ASYNC_NETWORK_IO 93%, WRITELOG 1%"."""
        if self.shares is None:
            return "not known"
        shown = [f"{name} {share * 100:.1f}%" for name, share in self.shares[:_TOP_WAITS] if share > 0]
        return f"{', '.join(shown)} of the elapsed time" if shown else "none"

    def of(self, wait_type: str) -> float | None:
        """The share of one wait type; 0 if it did not occur, None if waits are not known."""
        return None if self.shares is None else dict(self.shares).get(wait_type, 0.0)


_Key = tuple[str, str, str]
"""VM, form, arm."""


class WaitTotals:
    """Sums of wait and elapsed time, collected while the samples stream by."""

    def __init__(self) -> None:
        self._elapsed: dict[_Key, float] = defaultdict(float)
        self._waited: dict[_Key, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._seen: dict[_Key, None] = {}

    def add(self, batch: TimedBatch) -> None:
        """Add a batch: reading its documents together is much faster than one by one."""
        keys = [(sample.vm, sample.form, sample.arm) for sample in batch.samples]
        self._seen |= dict.fromkeys(keys)
        documents = json.loads(f"[{','.join(text or 'null' for text in batch.waits)}]")
        for key, sample, document in zip(keys, batch.samples, documents, strict=True):
            if document is None:
                continue
            self._elapsed[key] += sample.elapsed_ms or 0.0
            waited = self._waited[key]
            for name, wait in document.items():
                waited[name] += wait["wait_ms"]

    def by_form(self) -> tuple[WaitShare, ...]:
        """All arms together."""
        forms: dict[tuple[str, str], list[_Key]] = defaultdict(list)
        for key in self._seen:
            forms[key[:2]].append(key)
        return tuple(WaitShare(vm, form, self._shares(keys)) for (vm, form), keys in forms.items())

    def by_arm(self) -> tuple[WaitShare, ...]:
        """Each arm of each form; A/A counts for its arm."""
        return tuple(
            WaitShare(vm, form, self._shares([key]), arm) for key in self._seen for vm, form, arm in [key]
        )

    def _shares(self, keys: list[_Key]) -> tuple[tuple[str, float], ...] | None:
        total = sum(self._elapsed.get(key, 0.0) for key in keys)
        if total <= 0:
            return None
        waited: dict[str, float] = defaultdict(float)
        for key in keys:
            for name, ms in self._waited[key].items():
                waited[name] += ms
        found = [(name, ms / total) for name, ms in waited.items()]
        return tuple(sorted(found, key=lambda item: (-item[1], item[0])))
