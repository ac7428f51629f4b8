"""How a throughput grows: over vCPUs at each size, and over sizes in each arm. Losses are marked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vnuma.analysis.result import Analysis
from vnuma.domain.scaling import Scaling, scaling
from vnuma.report.model import LoadedRun

VCPUS = "vCPUs"


@dataclass(frozen=True)
class Curve:
    """Medians of boot medians along one load: `over` what, `at` which other level, as in "20 connections"."""

    form: str
    over: str
    at: str
    unit: str
    found: Scaling

    @property
    def words(self) -> str:
        """One sentence."""
        return f"{self.form}, over {self.over}, {self.at}: {self.found.words(self.unit, self.over)}"


def curves(loaded: LoadedRun, vm: str) -> list[Curve]:
    """Every curve of two points or more that a throughput of this VM gives."""
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


def scaling_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The curves for the terminal, one paragraph; nothing without a throughput."""
    found = curves(loaded, vm)
    if found:
        lines = (
            textwrap.fill(curve.words, width, subsequent_indent="    ", initial_indent="  ")
            for curve in found
        )
        yield "\n".join(["Scaling, by medians (described, not tested)", *lines])


def scaling_document(loaded: LoadedRun) -> list[dict[str, Any]]:
    """The same for programs, unrounded."""
    return [
        {
            "vm": vm,
            "form": curve.form,
            "over": curve.over,
            "at": curve.at,
            "unit": curve.unit,
            "points": [list(point) for point in curve.found.points],
            "peak": curve.found.peak,
            "negative": list(curve.found.negative),
            "worst_loss": curve.found.worst_loss,
        }
        for vm in loaded.study.vms
        for curve in curves(loaded, vm)
    ]


def _over_vcpus(loaded: LoadedRun, analysis: Analysis) -> Iterator[Curve]:
    """Only where each number of vCPUs has one arm: else something else differs too."""
    counts = {label: loaded.study.arm(label).vcpus for label in loaded.study.labels}
    if len(set(counts.values())) < len(counts):
        return
    for row in analysis.table:
        rates = {counts[cell.arm]: cell.median for cell in row.cells if counts.get(cell.arm) and cell.median}
        found = scaling({vcpus: rate for vcpus, rate in rates.items() if vcpus is not None})
        if found:
            at = loaded.study.workload.size_label(row.size)
            yield Curve(analysis.form, VCPUS, at, analysis.measure.unit, found)


def _over_sizes(loaded: LoadedRun, analysis: Analysis) -> Iterator[Curve]:
    for label in loaded.study.labels:
        rates = {
            row.size: cell.median
            for row in analysis.table
            for cell in row.cells
            if cell.arm == label and cell.median
        }
        found = scaling(rates)
        if found:
            yield Curve(analysis.form, loaded.result.design.size_word, label, analysis.measure.unit, found)
