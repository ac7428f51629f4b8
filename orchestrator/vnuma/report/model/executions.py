"""How the timed executions of each form ran (clock, nodes, DOP, plans, grants), and what they waited for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from vnuma.analysis.records import Series
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.store.timed import Timed, documents

CLOCK_WORDS = {
    "messages": "SET STATISTICS TIME, whole ms",
    "query_stats": "sys.dm_exec_query_stats, microseconds",
}


def read_again(work: WorkloadSettings, one: Timed) -> Series:
    """The series with its figures read from the kept output; an iteration without one counts as failed.

    Not for somebody else's run: an expression of his could take for ever.
    """
    own, kept = one.series, documents(one.executions)
    value = [
        None if old is None or known is None else work.read_again(known)
        for old, known in zip(own.value, kept, strict=True)
    ]
    measured = [(old is None) == (new is None) for old, new in zip(own.value, value, strict=True)]
    return own._replace(
        elapsed_ms=tuple(compress(own.elapsed_ms, measured)),
        cpu_ms=tuple(compress(own.cpu_ms, measured)),
        client_ms=tuple(compress(own.client_ms, measured)),
        value=tuple(compress(value, measured)),
        figures=tuple(compress(own.figures, measured)),
    )


OWN_CLOCK = "the workload's own, on SQL Server"


@dataclass
class FormExecutions:
    """What the timed iterations of a form on a VM had in common. Counters count executions."""

    vm: str
    form: str
    clocks: Counter[str] = field(default_factory=Counter)
    nodes: Counter[int] = field(default_factory=Counter)
    schedulers: Counter[int] = field(default_factory=Counter)
    dops: Counter[int] = field(default_factory=Counter)
    plans: Counter[str] = field(default_factory=Counter)
    grants_kb: Counter[int] = field(default_factory=Counter)
    without_statistics: int = 0

    def add(self, known: Mapping[str, Any], times: int) -> None:
        """Add a document of that many executions, in the form of `workloads.query_bench`; ignore others."""
        for name, counter in (
            ("clock", self.clocks),
            ("node_id", self.nodes),
            ("scheduler_id", self.schedulers),
            ("dop", self.dops),
            ("grant_kb", self.grants_kb),
            ("plan_hash", self.plans),
        ):
            if known.get(name) is not None:
                counter[known[name]] += times
        self.without_statistics += times * (known.get("reason") is not None)

    @property
    def words(self) -> str:
        """As in "clock: SET STATISTICS TIME, whole ms; node 0 (12), 1 (24); DOP 1; 1 plan; grant 0 KB"."""
        clocks = " and ".join(CLOCK_WORDS.get(name, name) for name in sorted(self.clocks))
        parts = [f"clock: {clocks or OWN_CLOCK}"]
        if self.nodes:
            parts.append(f"SQL node {_tallied(self.nodes)}")
        if self.dops:
            parts.append(f"DOP {_tallied(self.dops)}")
        if self.plans:
            noun = "plan" if len(self.plans) == 1 else f"{len(self.plans)} plans"
            parts.append(f"{noun} {', '.join(self.plans)}")
        if self.grants_kb:
            parts.append(f"memory grant at most {max(self.grants_kb):,} KB")
        if self.without_statistics:
            parts.append(f"{self.without_statistics} executions without plan statistics")
        return "; ".join(parts)


def add_executions(found: dict[tuple[str, str], FormExecutions], one: Timed) -> None:
    """Add a series to what is known by VM and form; those of older versions have no documents.

    Each distinct document of the series is read once.
    """
    alike = Counter(filter(None, one.executions))
    vm, form = one.series.vm, one.series.form
    for times, known in zip(alike.values(), documents(alike), strict=True):
        found.setdefault((vm, form), FormExecutions(vm, form)).add(known, times)


def _tallied(counter: Counter[int]) -> str:
    """`0`, or `0 (12 times), 1 (24 times)` when executions differ."""
    if len(counter) == 1:
        return str(next(iter(counter)))
    return ", ".join(f"{value} ({times} times)" for value, times in sorted(counter.items()))


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
    """Sums of wait and elapsed time, collected while the series stream by."""

    def __init__(self) -> None:
        self._elapsed: dict[_Key, float] = defaultdict(float)
        self._waited: dict[_Key, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._seen: dict[_Key, None] = {}

    def add(self, one: Timed) -> None:
        """Add a series."""
        key = (one.series.vm, one.series.form, one.series.arm)
        self._seen[key] = None
        waited, total = self._waited[key], self._elapsed[key]
        for elapsed, document in zip(one.series.elapsed_ms, documents(one.waits), strict=True):
            if document is not None:
                total += elapsed
                for name, wait in document.items():
                    waited[name] += wait["wait_ms"]
        self._elapsed[key] = total

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
