"""One CPU that is always busy while others are not, as from interrupts that a single CPU serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from vnuma.analysis.figures import FigureRow
from vnuma.domain.vm.plain_text import filled
from vnuma.report.model.model import LoadedRun
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
