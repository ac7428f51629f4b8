"""Differences with their intervals, drawn in the rows of a table. They stretch with it; text never scales.

Positions are in percent of the row's width, marks in the size of a letter. The row's cells have the same
content as text, so the drawing is hidden from screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from markupsafe import Markup, escape

from vnuma.analysis.between_runs import Change
from vnuma.analysis.records import Measure
from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import percent
from vnuma.domain.workloads.metric import medians, sized
from vnuma.report.charts import svg
from vnuma.report.charts.svg import LETTER, SHAPES, Figure, inline
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import Curve, curves
from vnuma.report.model.words import (
    boots_words,
    differences_words,
    direction,
    faster_side,
    named,
    verdict_kind,
)
from vnuma.words.validation import percent_text

_HEIGHT, _MIDDLE, _HOLLOW, _GAP = 26, 13, 21, 8


Judged = tuple[str, Verdict]
"""An arm, and its verdict against the reference."""

_NOTHING: Mapping[str, float] = MappingProxyType({})


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
    judged, reference = _judged(analysis.arms), analysis.table[0].cells[0].arm
    scale = _scale([judged], analysis.margin)
    title = f"Difference from {reference}, all sizes"
    return RowPlots(title, _rows(reference, judged, scale), _axis(scale), _direction(analysis.measure))


def each_size(
    analysis: Analysis, published: Mapping[int, Mapping[str, float]], size_word: str
) -> list[RowPlots]:
    """A drawing for each size on one scale; `published` figures, by size and arm, are hollow."""
    reference = analysis.table[0].cells[0].arm
    known = [_published_differences(published.get(size.size, {}), reference) for size in analysis.sizes]
    judged = [_judged(size.arms) for size in analysis.sizes]
    scale = _scale(judged, analysis.margin, [x for item in known for x in item.values()])
    axis, side = _axis(scale), _direction(analysis.measure)
    return [
        RowPlots(sized(size.size, size_word), _rows(reference, arms, scale, theirs), axis, side)
        for size, arms, theirs in zip(analysis.sizes, judged, known, strict=True)
    ]


def of_gaps(changes: Sequence[Change], measure: Measure) -> RowPlots:
    """How each arm's gap to the reference changed between two runs."""
    gaps = [(change.arm, change.gap) for change in changes if change.gap]
    reference = next(change.arm for change in changes if change.gap is None)
    scale = _scale([gaps], gaps[0][1].margin if gaps else 0.01)
    title = f"Gap to {reference}, after against before"
    return RowPlots(title, _rows(reference, gaps, scale), _axis(scale), _direction(measure))


def differences_figure(plots: RowPlots, analysis: Analysis, *, key: str, width: int) -> Figure:
    """Rows as one drawing, for a picture: arms at the left of `width` pixels, differences at the right."""
    left = LETTER * max(len(row.arm) for row in plots.rows) + 2 * _GAP
    right = LETTER * max(len(row.label) for row in plots.rows) + 2 * _GAP
    bottom = _HEIGHT * len(plots.rows)
    parts = [_placed(plots.axis, left, bottom, width)]
    for top, row in zip(range(0, bottom, _HEIGHT), plots.rows, strict=True):
        y = top + _MIDDLE + 4
        parts.append(f'<text class="arm" x="{left - _GAP}" y="{y}">{escape(row.arm)}</text>')
        parts.append(_placed(row.plot, left, top, width))
        parts.append(f'<text x="{left + width + _GAP}" y="{y}">{escape(row.label)}</text>')
    parts.append(
        f'<text class="side" x="{left + width / 2:g}" y="{bottom + 36}">{escape(plots.faster_side)}</text>'
    )
    size = f'width="{left + width + right}" height="{bottom + 44}"'
    drawn = f'<svg class="differences" {size}>{"".join(parts)}</svg>'
    level = percent_text(analysis.arms[0].verdict.level) if analysis.arms else ""
    words = f"{plots.title}, %, form {analysis.form}, {level} intervals; {faster_side(analysis.measure)}. "
    words += "; ".join(f"{row.arm} {row.label}" for row in plots.rows) + "."
    return Figure(inline(drawn, key, plots.title, words), plots.title, words)


def _placed(plot: Markup, left: int, top: int, width: int) -> str:
    return str(plot).replace('width="100%"', f'x="{left}" y="{top}" width="{width}"', 1)


def _judged(arms: Iterable[ArmResult]) -> list[Judged]:
    return [(arm.arm, arm.verdict) for arm in arms]


def _published_differences(known: Mapping[str, float], reference: str) -> dict[str, float]:
    """Published differences from the reference in percent at one size."""
    if reference not in known:
        return {}
    return {arm: (x / known[reference] - 1) * 100 for arm, x in known.items() if arm != reference}


def _scale(groups: Iterable[Sequence[Judged]], margin: float, more: Iterable[float] = ()) -> _Scale:
    """One scale for adjacent drawings, always including the equivalence band."""
    values, widest = list(more), max(1.0, margin * 100)
    for _, verdict in (one for group in groups for one in group):
        values += [percent(verdict.ratio)] if verdict.ratio is not None else []
        if verdict.interval:
            values += [percent(verdict.interval.low), percent(verdict.interval.high)]
    low, high = min([-1.5 * widest, *values]), max([1.5 * widest, *values])
    room = (high - low) * 0.04
    return _Scale(low - room, high + room, margin)


def _rows(
    reference: str, judged: Sequence[Judged], scale: _Scale, published: Mapping[str, float] = _NOTHING
) -> tuple[PlotRow, ...]:
    """The reference, then each arm; `published` differences are in percent."""
    rows = [PlotRow(reference, "reference", _svg("plot reference", _HEIGHT, _base(scale) + _at(scale, 0.0)))]
    labels = differences_words([verdict for _, verdict in judged])
    for number, ((arm, verdict), label) in enumerate(zip(judged, labels, strict=True), start=1):
        drawn = _base(scale)
        if verdict.ratio is not None and verdict.interval is not None:
            ends = (verdict.interval.low, verdict.interval.high)
            drawn += _line("interval", *(scale.at(percent(end)) for end in ends))
        if verdict.ratio is not None:
            drawn += _at(scale, percent(verdict.ratio), number)
        if arm in published:
            drawn += _mark(scale.at(published[arm]), _HOLLOW, SHAPES["diamond"], "hollow")
        plot = _svg(f"plot {escape(verdict_kind(verdict))}", _HEIGHT, drawn)
        rows.append(PlotRow(arm, label, plot))
    return tuple(rows)


def _base(scale: _Scale) -> str:
    """The equivalence band, and the line of no difference."""
    low, high = ((1 / (1 + scale.margin) - 1) * 100, scale.margin * 100)
    width = (high - low) / (scale.high - scale.low) * 100
    band = f'<rect class="band" x="{scale.at(low)}" y="0" width="{width:.2f}%" height="{_HEIGHT}"/>'
    return band + _line("zero", scale.at(0), scale.at(0), upright=True)


def _at(scale: _Scale, difference: float, number: int = 0) -> str:
    """The mark of an arm, whose number gives its shape."""
    return _mark(scale.at(difference), _MIDDLE, [*SHAPES.values()][number % len(SHAPES)], "mark")


def _axis(scale: _Scale) -> Markup:
    texts = "".join(
        f'<text x="{scale.at(tick)}" y="14">{"+" if tick > 0 else ""}{tick:.6g}</text>'
        for tick in scale.ticks()
    )
    return _svg("plot axis", 18, texts)


def _svg(classes: str, height: int, inner: str) -> Markup:
    return Markup(f'<svg class="{classes}" width="100%" height="{height}" aria-hidden="true">{inner}</svg>')


def _line(kind: str, left: str, right: str, *, upright: bool = False) -> str:
    top, bottom = (0, _HEIGHT) if upright else (_MIDDLE, _MIDDLE)
    return f'<line class="{kind}" x1="{left}" x2="{right}" y1="{top}" y2="{bottom}"/>'


def _mark(x: str, y: int, path: str, kind: str) -> str:
    return f'<svg x="{x}" y="{y}" overflow="visible"><path class="{kind}" d="{path}"/></svg>'


def _direction(measure: Measure) -> str:
    """The axis shows which direction is better."""
    left, right = ("faster", "slower") if measure.better == "lower" else ("slower", "faster")
    return f"← {left} · difference, % · {right} →"


_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [1, 3], [8, 2, 8, 6])
"""Lines differ by marks and dashes, which print without colour."""

_WIDE_RANGE = 8
"""Loads that span this factor get a logarithmic axis, as they are chosen by doubling."""


def scaling_charts(loaded: LoadedRun, vm: str, *, key: str, width: int) -> list[svg.Figure]:
    """A chart for each form and load of the VM; none without a throughput measured at two loads."""
    found = curves(loaded, vm)
    return [
        _chart(list(mine), f"{key}-{form}-{number}", width, _of(loaded, vm, form))
        for number, ((form, _), mine) in enumerate(groupby(found, key=lambda item: (item.form, item.over)))
    ]


def _of(loaded: LoadedRun, vm: str, form: str) -> str:
    """The caption: "Throughput, form seek, calls/s, higher is better; median of boot medians; 6 boots"."""
    measure = loaded.result.design.measure(form)
    analysis = loaded.result.analysis(vm, form, measure.key)
    boots = "" if analysis is None else f"; {boots_words(analysis, loaded.study.reference)}"
    what = f"{named(measure)}, form {form}, {measure.unit}, {direction(measure)}"
    return f"{what}; {medians(loaded.result.design.replicate)}{boots}"


def _chart(found: list[Curve], key: str, width: int, of: str) -> svg.Figure:
    form, over, unit = found[0].form, found[0].over, found[0].unit
    lines = [curve.at for curve in found]
    rows: svg.Rows = [
        {"line": curve.at, "x": load, "y": rate} for curve in found for load, rate in curve.found.points
    ]
    loads = sorted({float(str(row["x"])) for row in rows})
    wide = min(loads) > 0 and max(loads) / min(loads) >= _WIDE_RANGE
    scale = {"type": "log", "base": 2, "nice": False} if wide else {"zero": False, "nice": False}
    axis = {"values": loads, "format": ",d", "grid": True, "labelFlush": False}
    x = svg.quantity("x", scale=scale, title=over, axis=axis)
    axis = {"tickCount": 5, "minExtent": svg.label_room(max(float(str(row["y"])) for row in rows))}
    y = svg.quantity("y", scale={"zero": True}, title=f"{unit}, higher is better", axis=axis)
    legend = {
        "orient": "top",
        "columns": max(1, width // (48 + svg.LETTER * max(map(len, lines)))),
        "symbolFillColor": svg.OURS,
        "symbolStrokeColor": svg.OURS,
        "symbolSize": 90,
    }
    dashes = {"domain": lines, "range": [_DASHES[i % len(_DASHES)] for i in range(len(lines))]}
    layers = [
        svg.layer(
            rows,
            {"type": "line", "color": svg.INK, "strokeWidth": 1.4},
            x=x,
            y=y,
            detail=svg.name_of("line"),
            strokeDash=svg.name_of("line", scale=dashes, legend=None),
        ),
        svg.layer(
            rows,
            {"type": "point", "filled": True, "size": 70, "opacity": 1, "color": svg.OURS},
            x=x,
            y=y,
            shape=svg.shape_of("line", lines, legend),
        ),
    ]
    own_legends = {"legend": {"shape": "independent", "strokeDash": "independent"}}
    chart = {"layer": layers, "resolve": own_legends, "width": width, "height": 240}
    title, words = f"{unit} by {over}, form {form}", f"{of}."
    for curve in found:
        points = ", ".join(f"{rate:,.4g} at {load:,}" for load, rate in curve.found.points)
        words += f" {curve.at}: {points}."
    return svg.draw(chart, key=key, title=title, words=words)
