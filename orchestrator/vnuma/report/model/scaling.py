"""How a throughput grows: over vCPUs at each size, and over sizes in each arm, with losses marked."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.growth import LOSS, Loss, Scaling, Unit, losses, scaling
from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import amount
from vnuma.domain.workloads.metric import Replicate, sized
from vnuma.report.model.model import LoadedRun
from vnuma.words.plain_text import filled, plural

VCPUS = "vCPUs"

_RULE = (
    f"Negative scaling is a rate {LOSS:.0%} or more below the best one at a smaller load, where "
    f"{MIN_BOOTS_FOR_VERDICT} {{replicates}} or more show a loss: one-sided 95% intervals that hold for all "
    "pairs of a curve's loads together, each curve by itself."
)
_SAME_ORDER = (
    " Over {size_word}, a loss may also come with time: each {replicate} runs its loads in the order of the "
    "study."
)


@dataclass(frozen=True)
class Curve:
    """Medians of boot medians along one load: `over` names it, `at` the fixed level, as "20 connections".

    `negative` are the loads with a proven loss; `unshown` says why others in `found.lower` are not proven.
    """

    form: str
    over: str
    at: str
    unit: str
    found: Scaling
    negative: tuple[int, ...]
    unshown: str

    @property
    def words(self) -> str:
        """One sentence."""
        peak = f"peaks at {sized(self.found.peak, self.over)}"
        rate = f"{amount(self.found.peak_rate, self.unit)} {self.unit}"
        text = f"{self.form}, over {self.over}, {self.at}: {peak} ({rate})"
        others = tuple(load for load in self.found.lower if load not in self.negative)
        if self.negative:
            text += f"; negative scaling at {self._less(self.negative)}"
        if others:
            text += f"; lower at {self._less(others)}, not shown: {self.unshown}"
        return text if self.found.lower else f"{text}; no negative scaling found"

    def _less(self, loads: tuple[int, ...]) -> str:
        named = ", ".join(f"{load:,}" for load in loads)
        return f"{named} {self.over}: up to {self.found.worst_loss(loads):.0%} less"


def curves(loaded: LoadedRun, vm: str) -> list[Curve]:
    """Every curve of at least two points for a throughput of this VM."""
    design = loaded.result.design
    mine = [
        item
        for item in loaded.result.analyses
        if item.vm == vm and item.measure.better == "higher" and item.measure == design.measure(item.form)
    ]
    return [
        curve
        for analysis in mine
        for curve in (*_over_vcpus(loaded, analysis), *_over_sizes(loaded, analysis))
    ]


def scaling_note(loaded: LoadedRun, vm: str) -> str:
    """The mark's meaning, for a page; empty without a curve."""
    found, design = curves(loaded, vm), loaded.result.design
    if not found:
        return ""
    order = _SAME_ORDER if any(curve.over != VCPUS for curve in found) else ""
    return (_RULE + order).format(
        replicate=design.replicate, replicates=plural(design.replicate), size_word=design.size_word
    )


def scaling_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The curves for the terminal as one paragraph; empty without a throughput."""
    found = curves(loaded, vm)
    if found:
        lines = (filled(curve.words, width, first="  ", then="    ") for curve in found)
        yield "\n".join(["Scaling, by medians; losses are tested", *lines])


def _over_vcpus(loaded: LoadedRun, analysis: Analysis) -> Iterator[Curve]:
    """Only if each number of vCPUs has one arm, as otherwise something else differs too. Paired by block."""
    counts = {label: loaded.study.arm(label).vcpus for label in loaded.study.labels}
    if len(set(counts.values())) < len(counts):
        return
    for index, row in enumerate(analysis.table):
        medians = {
            count: cell.median for cell in row.cells if (count := counts.get(cell.arm)) and cell.median
        }
        blocks: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for point in analysis.points:
            if count := counts.get(point.arm):
                blocks[count][point.block].append(point.medians[index])
        # The reference's two columns are one arm: its rate in a block is their geometric mean.
        rates = {
            count: {block: statistics.geometric_mean(values) for block, values in of_count.items()}
            for count, of_count in blocks.items()
        }
        withheld = f"verdicts withheld, {analysis.withheld}" if analysis.withheld else ""
        at = loaded.study.workload.size_label(row.size)
        yield from _curve(analysis, (VCPUS, at), medians, rates, withheld)


def _over_sizes(loaded: LoadedRun, analysis: Analysis) -> Iterator[Curve]:
    """For each arm, within its boots; empty where a size is not a load."""
    design = loaded.result.design
    if not loaded.study.workload.sizes_are_loads:
        return
    for label in loaded.study.labels:
        mine = [point for point in analysis.points if point.arm == label]
        medians = {
            row.size: cell.median
            for row in analysis.table
            for cell in row.cells
            if cell.arm == label and cell.median
        }
        rates = {
            size: {(point.label, point.block): point.medians[index] for point in mine}
            for index, size in enumerate(design.sizes)
        }
        yield from _curve(analysis, (design.size_word, label), medians, rates, "")


def _curve(
    analysis: Analysis,
    place: tuple[str, str],
    medians: Mapping[int, float],
    rates: Mapping[int, Mapping[Unit, float]],
    withheld: str,
) -> Iterator[Curve]:
    found = scaling(medians)
    if found is None:
        return
    tested = losses(rates)
    shown = {loss.load for loss in tested if loss.shown} if not withheld else set()
    negative = tuple(load for load in found.lower if load in shown)
    why = "" if set(negative) == set(found.lower) else withheld or _why(tested, analysis.replicate)
    over, at = place
    yield Curve(analysis.form, over, at, analysis.measure.unit, found, negative, why)


def _why(tested: tuple[Loss, ...], replicate: Replicate) -> str:
    """Why a measured loss is not proven."""
    fewest = min((loss.pairs for loss in tested), default=0)
    if fewest < MIN_BOOTS_FOR_VERDICT:
        return f"{fewest} of {MIN_BOOTS_FOR_VERDICT} {plural(replicate)}"
    return f"within what {plural(replicate)} scatter"
