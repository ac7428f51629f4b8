"""How the timed executions ran: clock, nodes, DOP, plans and memory grants, by form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vnuma.store.timed import TimedBatch

CLOCK_WORDS = {
    "messages": "SET STATISTICS TIME, whole ms",
    "query_stats": "sys.dm_exec_query_stats, microseconds",
}

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


class ExecutionTotals:
    """Collected while the samples stream by; each distinct document of a batch is read once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], FormExecutions] = {}

    def add(self, batch: TimedBatch) -> None:
        """Add a batch; samples of older versions have no documents."""
        alike = Counter(
            (sample.vm, sample.form, text)
            for sample, text in zip(batch.samples, batch.executions, strict=True)
            if text is not None
        )
        documents = json.loads(f"[{','.join(text for _, _, text in alike)}]")
        for ((vm, form, _), times), known in zip(alike.items(), documents, strict=True):
            self._found.setdefault((vm, form), FormExecutions(vm, form)).add(known, times)

    def forms(self) -> tuple[FormExecutions, ...]:
        """Every form of every VM with known executions."""
        return tuple(self._found.values())


def _tallied(counter: Counter[int]) -> str:
    """`0`, or `0 (12 times), 1 (24 times)` when executions differ."""
    if len(counter) == 1:
        return str(next(iter(counter)))
    return ", ".join(f"{value} ({times} times)" for value, times in sorted(counter.items()))


def of_vm(forms: Iterable[FormExecutions], vm: str) -> list[FormExecutions]:
    """Those of one VM."""
    return [item for item in forms if item.vm == vm]
