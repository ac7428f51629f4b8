"""Busy CPUs: one that interrupts saturate while others idle, and the host's, by CPU ready and co-stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from vnuma.analysis.table import FigureRow
from vnuma.domain.vm.facts import CO_STOP_LIMIT, READY_LIMIT, share_of_vcpu
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm
from vnuma.words.plain_text import counted, filled
from vnuma.workloads.call_volume.settings import BUSIEST, OTHER_SCHEDULERS, is_saturated

MEANS = "More vCPUs answer no more calls than this one can take in."


@dataclass(frozen=True)
class Saturated:
    """An arm's busy scheduler and the others' mean, in percent, from `since` up to `size`."""

    form: str
    arm: str
    since: int
    size: int
    busiest: float
    others: float

    def words(self, size_word: str) -> str:
        """`16-way from 8 connections (98%, the others 7%)`."""
        return (
            f"{self.arm} from {self.since} {size_word} ({self.busiest:.0f}%, the others {self.others:.0f}%)"
        )


def saturated(loaded: LoadedRun, vm: str) -> list[Saturated]:
    """Every arm and form with such a CPU, with the figures of its largest size."""
    mine = [row for row in loaded.result.figures if row.vm == vm]
    found = []
    for form, rows in groupby(mine, key=lambda row: row.form):
        known = {(row.metric.name, row.size): row for row in rows}
        for arm in loaded.study.labels:
            loads = list(_loads(known, arm))
            if loads:
                size, busiest, others = loads[-1]
                found.append(Saturated(form, arm, loads[0][0], size, busiest, others))
    return found


def saturation_sentences(loaded: LoadedRun, vm: str) -> Iterator[str]:
    """A sentence for each form: `noop: one CPU was saturated in 16-way from 8 connections (98%, ...).`"""
    word = loaded.result.design.size_word
    for form, arms in groupby(saturated(loaded, vm), key=lambda one: one.form):
        yield f"{form}: one CPU was saturated in {'; '.join(arm.words(word) for arm in arms)}."


def saturation_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The same for the terminal as one paragraph; empty without such a CPU."""
    found = [*saturation_sentences(loaded, vm)]
    if found:
        lines = (filled(one, width, first="  ", then="    ") for one in found)
        yield "\n".join([filled(f"One busy CPU. {MEANS}", width, then="  "), *lines])


def _loads(known: dict[tuple[str, int], FigureRow], arm: str) -> Iterator[tuple[int, float, float]]:
    """The sizes at which the arm has such a CPU, in ascending order."""
    for (name, size), row in sorted(known.items()):
        others = known.get((OTHER_SCHEDULERS.name, size))
        if name != BUSIEST.name or others is None:
            continue
        busiest, rest = _median(row, arm), _median(others, arm)
        if busiest is not None and rest is not None and is_saturated(busiest, rest):
            yield size, busiest, rest


def _median(row: FigureRow, arm: str) -> float | None:
    return next((cell.median for cell in row.cells if cell.arm == arm), None)


READY = "cpu.ready.summation"
CO_STOP = "cpu.costop.summation"


@dataclass(frozen=True)
class Contention:
    """The highest 20 seconds of any boot, as shares of one vCPU's time; `boots` had a sample."""

    boots: int
    ready: float
    co_stop: float | None
    """None where vSphere has no such counter."""

    @property
    def contended(self) -> bool:
        """Whether either exceeds its usual threshold."""
        return self.ready > READY_LIMIT or (self.co_stop or 0.0) > CO_STOP_LIMIT

    @property
    def words(self) -> str:
        """As in "CPU ready at most 0.4% of a vCPU's time, co-stop at most 0.0%, in any 20 s (48 boots)"."""
        co_stop = "not known" if self.co_stop is None else f"at most {self.co_stop * 100:.1f}%"
        return (
            f"CPU ready at most {self.ready * 100:.1f}% of a vCPU's time, co-stop {co_stop}, in any 20 s "
            f"({counted(self.boots, 'boot')})"
        )


def contention(loaded: LoadedRun, vm: Vm) -> Contention | str:
    """Over every boot of a VM, or why it is unknown."""
    boots = loaded.attempt_facts(vm, "counters", "vm").values()
    seen = [boot for boot in boots if isinstance(boot, Mapping) and READY in boot]
    if not seen:
        reasons = [str(boot["not_evaluated"]) for boot in boots if "not_evaluated" in boot]
        return reasons[-1] if reasons else "vSphere's counters were not read"
    vcpus = loaded.study.vcpus or 1  # only machines have none, and vSphere has no counters for them
    stopped = [_share(boot[CO_STOP], vcpus) for boot in seen if CO_STOP in boot]
    ready = max(_share(boot[READY], vcpus) for boot in seen)
    return Contention(len(seen), ready, max(stopped, default=None))


def _share(series: Mapping[str, Any], vcpus: int) -> float:
    """The highest sample's milliseconds of all vCPUs, as a share of one vCPU's time."""
    return share_of_vcpu(float(series["highest"]), float(series["interval_s"]), vcpus)
