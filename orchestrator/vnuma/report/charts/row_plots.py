"""Differences with their intervals, drawn in the rows of a table. They stretch with it; text never scales.

Positions are in percent of the row's width, marks in the size of a letter. The row's cells have the same
content as text, so the drawing is hidden from screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from vnuma.analysis.change_between_runs import Change
from vnuma.analysis.measure import Measure
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Verdict
from vnuma.domain.workloads.sizes import sized
from vnuma.report.charts.difference_charts import (
    Judged,
    difference_rows,
    difference_title,
    extent_of,
    published_differences,
)
from vnuma.report.charts.svg import SHAPES
from vnuma.report.model.words import verdict_kind

_HEIGHT, _MIDDLE, _HOLLOW = 26, 13, 21
_PATHS = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "square": "M-4.5-4.5h9v9h-9Z",
    "diamond": "M0-6L6 0L0 6L-6 0Z",
    "triangle-up": "M0-5.5L5.5 4.5H-5.5Z",
    "triangle-down": "M0 5.5L5.5-4.5H-5.5Z",
    "cross": "M-2-5.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5Z",
    "triangle-right": "M5.5 0L-4.5 5.5V-5.5Z",
    "triangle-left": "M-5.5 0L4.5 5.5V-5.5Z",
}


@dataclass(frozen=True)
class PlotRow:
    """One arm: its difference as text, and drawn."""

    arm: str
    label: str
    plot: Markup


@dataclass(frozen=True)
class RowPlots:
    """Arms against the reference on one scale. `axis` is drawn below them."""

    title: str
    rows: tuple[PlotRow, ...]
    axis: Markup
    faster_side: str
    """Which direction is faster: the heading of the drawn column."""


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    margin: float

    def at(self, percent: float) -> str:
        """The position of a difference, in percent of the width."""
        return f"{(percent - self.low) / (self.high - self.low) * 100:.2f}%"

    def ticks(self) -> Iterator[float]:
        """About four round numbers."""
        rough = (self.high - self.low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1):
            yield number * step


def all_sizes(analysis: Analysis) -> RowPlots:
    """All sizes together."""
    scale = _Scale(*extent_of([analysis.arms], ()), analysis.margin)
    reference = analysis.table[0].cells[0].arm
    rows = difference_rows(analysis.arms, None, reference)
    return _plots(analysis.measure, analysis.arms, scale, rows, f"Difference from {reference}, all sizes")


def each_size(
    analysis: Analysis, published: Mapping[int, Mapping[str, float]], size_word: str
) -> list[RowPlots]:
    """A drawing for each size on one scale; `published` figures, by size and arm, are hollow."""
    reference = analysis.table[0].cells[0].arm
    known = [published_differences(published.get(size.size, {}), reference) for size in analysis.sizes]
    extent = extent_of([size.arms for size in analysis.sizes], [x for item in known for x in item.values()])
    scale = _Scale(*extent, analysis.margin)
    return [
        _plots(
            analysis.measure,
            size.arms,
            scale,
            difference_rows(size.arms, paper, reference),
            sized(size.size, size_word),
        )
        for size, paper in zip(analysis.sizes, known, strict=True)
    ]


@dataclass(frozen=True)
class _Gap:
    """An arm's gap to the reference, drawn as a difference."""

    arm: str
    verdict: Verdict


def of_gaps(changes: Sequence[Change], measure: Measure) -> RowPlots:
    """How each arm's gap to the reference changed between two runs."""
    gaps = [_Gap(change.arm, change.gap) for change in changes if change.gap]
    reference = next(change.arm for change in changes if change.gap is None)
    scale = _Scale(*extent_of([gaps], ()), gaps[0].verdict.margin if gaps else 0.01)
    rows = difference_rows(gaps, None, reference)
    return _plots(measure, gaps, scale, rows, f"Gap to {reference}, after against before")


def _plots(
    measure: Measure,
    arms: Iterable[Judged],
    scale: _Scale,
    rows: Sequence[Mapping[str, object]],
    title: str,
) -> RowPlots:
    kinds = {arm.arm: verdict_kind(arm.verdict) for arm in arms}
    drawn = (
        PlotRow(
            str(row["arm"]),
            str(row["label"]),
            _row(row, scale, SHAPES[number % len(SHAPES)], kinds.get(str(row["arm"]), "reference")),
        )
        for number, row in enumerate(rows)
    )
    return RowPlots(title, tuple(drawn), _axis(scale), difference_title(measure))


def _row(row: Mapping[str, object], scale: _Scale, shape: str, kind: str) -> Markup:
    parts = [_band(scale), _line("zero", scale.at(0), scale.at(0), upright=True)]
    if "low" in row:
        ends = (scale.at(float(str(row[end]))) for end in ("low", "high"))
        parts.append(_line("interval", *ends))
    if "value" in row:
        parts.append(_mark(scale.at(float(str(row["value"]))), _MIDDLE, _PATHS[shape], "mark"))
    if "published" in row:
        parts.append(_mark(scale.at(float(str(row["published"]))), _HOLLOW, _PATHS["diamond"], "hollow"))
    return _svg(f"plot {escape(kind)}", _HEIGHT, "".join(parts))


def _axis(scale: _Scale) -> Markup:
    texts = "".join(
        f'<text x="{scale.at(tick)}" y="14">{"+" if tick > 0 else ""}{tick:.6g}</text>'
        for tick in scale.ticks()
    )
    return _svg("plot axis", 18, texts)


def _svg(classes: str, height: int, inner: str) -> Markup:
    return Markup(f'<svg class="{classes}" width="100%" height="{height}" aria-hidden="true">{inner}</svg>')


def _band(scale: _Scale) -> str:
    low, high = ((1 / (1 + scale.margin) - 1) * 100, scale.margin * 100)
    width = (high - low) / (scale.high - scale.low) * 100
    return f'<rect class="band" x="{scale.at(low)}" y="0" width="{width:.2f}%" height="{_HEIGHT}"/>'


def _line(kind: str, left: str, right: str, *, upright: bool = False) -> str:
    top, bottom = (0, _HEIGHT) if upright else (_MIDDLE, _MIDDLE)
    return f'<line class="{kind}" x1="{left}" x2="{right}" y1="{top}" y2="{bottom}"/>'


def _mark(x: str, y: int, path: str, kind: str) -> str:
    return f'<svg x="{x}" y="{y}" overflow="visible"><path class="{kind}" d="{path}"/></svg>'
