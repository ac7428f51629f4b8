"""The charts of a report: differences with their intervals, and every timed iteration.

Each names its unit, n and direction. Arms keep the order of the study and one shape throughout.
Published figures are hollow, ours filled; the band too small to matter is shaded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from vnuma.analysis.result import Analysis, ArmResult, CellPoint
from vnuma.analysis.wording import limits, percent, signed
from vnuma.report.svg import BAND, GRID, INK, LESS, MUTED, OURS, SHAPES, Figure, Layers, draw
from vnuma.report.words import direction, faster_side, level_words, places, size_words

Rows = list[dict[str, object]]

MOST_ITERATIONS = 2_000
"""Above this a strip plot shows the range of each boot's iterations instead of every one."""

_ROW = 30
_LETTER = 7
"""Height of a row and width of a letter, in pixels."""


def forest(analysis: Analysis, *, key: str, width: int) -> Figure:
    """All sizes together: every arm's difference from the reference with its interval."""
    rows = _difference_rows(analysis.arms, None, analysis.table[0].cells[0].arm)
    reference = analysis.table[0].cells[0].arm
    level = level_words(analysis.arms[0].verdict.level) if analysis.arms else ""
    chart = _differences(rows, _extent([analysis.arms], ()), analysis, width, with_text=False)
    words = f"Difference from {reference} in percent over all sizes, {level} intervals; "
    words += f"{faster_side(analysis.measure)}. "
    return draw(chart, key=key, title=f"Difference from {reference}, all sizes", words=words + _said(rows))


def by_size(
    analysis: Analysis,
    published: Mapping[int, Mapping[str, float]],
    size_word: str,
    *,
    key: str,
    width: int = 140,
) -> list[Figure]:
    """For each size: every arm's difference from the reference, with the published one beside it.

    `published` are somebody else's figures, by size and arm, in the unit of the measure.
    """
    reference = analysis.table[0].cells[0].arm
    width = max(80, width - _LETTER * max(0, max(len(cell.arm) for cell in analysis.table[0].cells) - 5))
    known = [_published(published.get(size.size, {}), reference) for size in analysis.sizes]
    extent = _extent([size.arms for size in analysis.sizes], [x for item in known for x in item.values()])
    figures = []
    for size, paper in zip(analysis.sizes, known, strict=True):
        rows = _difference_rows(size.arms, paper, reference)
        chart = _differences(rows, extent, analysis, width, with_text=True)
        level = level_words(size.arms[0].verdict.level) if size.arms else ""
        words = f"Difference from {reference}, %, form {analysis.form}, {level} intervals; "
        words += f"{faster_side(analysis.measure)}. "
        title = size_words(size.size, size_word)
        figures.append(draw(chart, key=f"{key}-{size.size}", title=title, words=words + _said(rows)))
    return figures


def strips(
    analysis: Analysis, size_word: str, *, key: str, width: int = 285, height: int = 190
) -> list[Figure]:
    """For each size: every timed iteration, boot by boot in the order run, with each arm's median."""
    return [
        _strip(
            analysis,
            index,
            title=size_words(table.size, size_word),
            key=f"{key}-{table.size}",
            width=width,
            height=height,
        )
        for index, table in enumerate(analysis.table)
    ]


def _difference_rows(arms: Iterable[ArmResult], published: dict[str, float] | None, reference: str) -> Rows:
    shown = list(arms)
    margins = places([arm.verdict.interval for arm in shown], shown[0].verdict.margin if shown else 0.01)
    rows: Rows = [{"arm": reference, "value": 0.0, "label": "reference"}]
    for arm, decimals in zip(shown, margins, strict=True):
        verdict = arm.verdict
        row: dict[str, object] = {"arm": arm.arm, "label": "no valid boot"}
        if verdict.ratio is not None:
            row |= {"value": percent(verdict.ratio), "label": signed(verdict.ratio, decimals)}
        if verdict.ratio is not None and verdict.interval is not None:
            row |= {"low": percent(verdict.interval.low), "high": percent(verdict.interval.high)}
            row["label"] = f"{signed(verdict.ratio, decimals)} ({limits(verdict.interval, decimals)})"
        if published and arm.arm in published:
            row["published"] = published[arm.arm]
        rows.append(row)
    return rows


def _published(known: Mapping[str, float], reference: str) -> dict[str, float]:
    """Published differences from the reference in percent at one size."""
    if reference not in known:
        return {}
    return {arm: (x / known[reference] - 1) * 100 for arm, x in known.items() if arm != reference}


def _extent(groups: Iterable[Sequence[ArmResult]], more: Iterable[float]) -> tuple[float, float]:
    """One scale for all charts that stand side by side, the equivalence band always in it."""
    values, margin = list(more), 1.0
    for arm in (arm for group in groups for arm in group):
        margin = max(margin, arm.verdict.margin * 100)
        values += [percent(x) for x in (arm.verdict.ratio,) if x is not None]
        if arm.verdict.interval:
            values += [percent(arm.verdict.interval.low), percent(arm.verdict.interval.high)]
    low, high = min([-1.5 * margin, *values]), max([1.5 * margin, *values])
    room = (high - low) * 0.04
    return low - room, high + room


def _differences(
    rows: Rows, extent: tuple[float, float], analysis: Analysis, width: int, *, with_text: bool
) -> Layers:
    arms = [str(row["arm"]) for row in rows]
    margin = analysis.arms[0].verdict.margin if analysis.arms else 0.01
    height = _ROW * len(rows)
    scale = alt.Scale(domain=list(extent), nice=False, zero=False)
    x = alt.X("value:Q", scale=scale, title=_difference_title(analysis))
    x = x.axis(
        tickCount=max(3, width // 55), grid=True, labelExpr="(datum.value > 0 ? '+' : '') + datum.label"
    )
    y = alt.Y("arm:N", sort=arms, title=None, scale=alt.Scale(domain=arms))
    y = y.axis(ticks=False, domain=False, labelPadding=8)
    band = [{"low": (1 / (1 + margin) - 1) * 100, "high": margin * 100}]
    values = alt.InlineData(values=rows)
    measured = [row for row in rows if "value" in row]
    layers: list[alt.Chart] = [
        alt.Chart(alt.InlineData(values=band))
        .mark_rect(color=BAND)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=MUTED).encode(x="zero:Q"),
        alt.Chart(alt.InlineData(values=[row for row in rows if "low" in row]))
        .mark_rule(color=OURS, strokeWidth=2.5)
        .encode(x="low:Q", x2="high:Q", y=y),
        alt.Chart(alt.InlineData(values=measured))
        .mark_point(filled=True, size=90, opacity=1, color=OURS)
        .encode(x=x, y=y, shape=_shape(arms)),
        alt.Chart(alt.InlineData(values=[row for row in rows if "published" in row]))
        .mark_point(filled=False, size=46, opacity=1, color=INK, strokeWidth=1.5, yOffset=10, shape="diamond")
        .encode(x="published:Q", y=y),
    ]
    if with_text:
        layers.append(
            alt.Chart(values)
            .mark_text(align="left", baseline="middle")
            .encode(x=alt.value(width + 8), y=y, text="label:N")
        )
    # Text is measured in another font than the reader's: leave it room.
    padding = {"left": 6, "top": 6, "bottom": 6, "right": 46 if with_text else 10}
    return alt.layer(*layers).properties(width=width, height=height, padding=padding)


def _difference_title(analysis: Analysis) -> str:
    """The axis says which way is which."""
    left, right = ("faster", "slower") if analysis.measure.better == "lower" else ("slower", "faster")
    return f"{left}  <  difference, %  >  {right}"


def _shape(arms: Sequence[str]) -> alt.Shape:
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(arms))]
    return alt.Shape("arm:N", scale=alt.Scale(domain=list(arms), range=shapes), legend=None)


def _said(rows: Rows) -> str:
    return "; ".join(f"{row['arm']} {row['label']}" for row in rows) + "."


def _strip(analysis: Analysis, index: int, *, title: str, key: str, width: int, height: int) -> Figure:
    arms = [cell.arm for cell in analysis.table[index].cells]
    unit, divisor = _unit(analysis, index)
    boots, iterations = _strip_rows(analysis.points, arms, index, divisor)
    bars: Rows = [
        {"x": lane - 0.42, "x2": lane + 0.42, "y": cell.median / divisor}
        for lane, cell in enumerate(analysis.table[index].cells)
        if cell.median is not None
    ]
    axis = f"{unit}, {direction(analysis.measure)}"
    x = alt.X("x:Q", scale=alt.Scale(domain=[-0.5, len(arms) - 0.5], nice=False), axis=None)
    # Without padding the marks of the highest and lowest boot lie half outside the plot.
    y = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=8), title=axis).axis(tickCount=5)
    names: Rows = [{"x": lane, "arm": arm} for lane, arm in enumerate(arms)]
    lanes: Rows = [{"x": lane - 0.5} for lane in range(1, len(arms))]
    layers = [
        alt.Chart(alt.InlineData(values=lanes)).mark_rule(color=GRID).encode(x=x),
        alt.Chart(alt.InlineData(values=bars))
        .mark_rule(color=LESS, strokeWidth=2)
        .encode(x=x, x2="x2:Q", y=y),
        _iteration_layer(iterations, x, y),
        alt.Chart(alt.InlineData(values=boots))
        .mark_point(filled=True, size=44, opacity=1, color=OURS)
        .encode(x=x, y=y, shape=_shape(arms)),
        _names(names, width).encode(x=x, y=alt.value(height + 8), text="arm:N"),
    ]
    chart = alt.layer(*layers).properties(width=width, height=height)
    return draw(chart, key=key, title=title, words=_strip_words(analysis, index, unit, divisor))


def _names(rows: Rows, width: int) -> alt.Chart:
    """Names of the arms under their lanes; upright where they would run into each other."""
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows))
    if max(len(str(row["arm"])) for row in rows) * _LETTER * len(rows) > width:
        chart = chart.mark_text(angle=270, align="right", baseline="middle")
    else:
        chart = chart.mark_text(baseline="top")
    return chart


def _strip_rows(
    points: Sequence[CellPoint], arms: Sequence[str], index: int, divisor: float
) -> tuple[Rows, Rows]:
    """Boot medians and iterations; the boots of an arm stand from left to right in the order run."""
    boots: Rows = []
    iterations: Rows = []
    for lane, arm in enumerate(arms):
        mine = sorted((p for p in points if p.arm == arm), key=lambda p: (p.position or 0, p.block))
        step = 0.84 / max(1, len(mine))
        for place, point in enumerate(mine):
            x = lane - 0.42 + step * (place + 0.5)
            boots.append({"arm": arm, "x": x, "y": point.medians[index] / divisor})
            iterations += [
                {"x": x - step * 0.36, "x2": x + step * 0.36, "y": ms / divisor}
                for ms in point.iterations[index]
            ]
    if len(iterations) <= MOST_ITERATIONS:
        return boots, iterations
    ranges: Rows = [
        {
            "x": boot["x"],
            "y": min(point.iterations[index]) / divisor,
            "y2": max(point.iterations[index]) / divisor,
        }
        for lane, arm in enumerate(arms)
        for boot, point in zip(
            [boot for boot in boots if boot["arm"] == arm],
            sorted((p for p in points if p.arm == arm), key=lambda p: (p.position or 0, p.block)),
            strict=True,
        )
    ]
    return boots, ranges


def _iteration_layer(rows: Rows, x: alt.X, y: alt.Y) -> alt.Chart:
    """A short stroke for every iteration, or an upright one from the fastest to the slowest of a boot."""
    upright = bool(rows) and "y2" in rows[0]
    ends = {"y2": "y2:Q"} if upright else {"x2": "x2:Q"}
    chart: alt.Chart = alt.Chart(alt.InlineData(values=rows)).mark_rule(
        color=MUTED, strokeWidth=1.3, opacity=1
    )
    return chart.encode(x=x, y=y, **ends)


def strip_unit(analysis: Analysis, size: int) -> str:
    """The unit on the axis of that size's strip."""
    return _unit(analysis, [table.size for table in analysis.table].index(size))[0]


def _unit(analysis: Analysis, index: int) -> tuple[str, float]:
    """Seconds instead of long milliseconds; any other unit as it is."""
    unit, medians = analysis.measure.unit, [point.medians[index] for point in analysis.points]
    if unit != "ms" or not medians or statistics.median(medians) < 10_000:
        return unit, 1.0
    return "s", 1000.0


def _strip_words(analysis: Analysis, index: int, unit: str, divisor: float) -> str:
    parts = []
    for cell in analysis.table[index].cells:
        if cell.median is None or cell.low is None or cell.high is None:
            parts.append(f"{cell.arm} no valid boot")
            continue
        low, middle, high = (_short(x / divisor) for x in (cell.low, cell.median, cell.high))
        parts.append(f"{cell.arm} median {middle}, boots {low} to {high} {unit} (n = {cell.boots})")
    return f"Every timed iteration, form {analysis.form}, {direction(analysis.measure)}: {'; '.join(parts)}."


def _short(value: float) -> str:
    """Three digits at least, whole numbers with thousands comma."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.{max(0, 2 - int(math.log10(max(value, 1e-9))))}f}"
