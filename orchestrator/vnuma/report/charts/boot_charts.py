"""Boots in the order run: every timed iteration at each size, and each boot beside its column's mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from vnuma.analysis.result import Analysis, CellPoint
from vnuma.domain.workloads.metric import none_valid, sized
from vnuma.report.charts import svg
from vnuma.report.model.words import direction, drift_words
from vnuma.words.plain_text import counted, plural

MOST_ITERATIONS = 2_000
"""Above this number a strip plot shows the range of each boot's iterations instead of all."""


def strips(
    analysis: Analysis, size_word: str, *, key: str, width: int = 285, height: int = 190
) -> list[svg.Figure]:
    """For each size: every timed iteration, boot by boot in the order run, with each arm's median."""
    return [_strip(analysis, index, size_word, key, (width, height)) for index in range(len(analysis.table))]


def _strip(analysis: Analysis, index: int, size_word: str, key: str, room: tuple[int, int]) -> svg.Figure:
    table, (width, height) = analysis.table[index], room
    arms = [cell.arm for cell in table.cells]
    unit, divisor = _unit(analysis, index)
    boots, iterations = _strip_rows(analysis.points, arms, index, divisor)
    bars: svg.Rows = [
        {"x": column - 0.42, "x2": column + 0.42, "y": cell.median / divisor}
        for column, cell in enumerate(table.cells)
        if cell.median is not None
    ]
    axis = f"{unit}, {direction(analysis.measure)}"
    x = svg.quantity("x", scale={"domain": [-0.5, len(arms) - 0.5], "nice": False}, axis=None)
    labels = svg.label_room(max((float(str(row["y"])) for row in bars), default=0.0))
    # Without padding, the marks of the highest and lowest boot would be cut in half.
    scale = {"zero": False, "padding": 8}
    y = svg.quantity("y", scale=scale, title=axis, axis={"tickCount": 5, "minExtent": labels})
    names: svg.Rows = [{"x": column, "arm": arm} for column, arm in enumerate(arms)]
    separators: svg.Rows = [{"x": column - 0.5} for column in range(1, len(arms))]
    point = {"type": "point", "filled": True, "size": 44, "opacity": 1, "color": svg.OURS}
    end = "y2" if iterations and "y2" in iterations[0] else "x2"
    stroke = {"type": "rule", "color": svg.MUTED, "strokeWidth": 1.3, "opacity": 1}
    below: svg.Spec = {"type": "text", "baseline": "top"}
    if max(map(len, arms)) * svg.LETTER * len(arms) > width:  # vertical, as the names would overlap
        below = {"type": "text", "angle": 270, "align": "right", "baseline": "middle"}
    layers = [
        svg.layer(separators, {"type": "rule", "color": svg.GRID}, x=x),
        svg.layer(bars, {"type": "rule", "color": svg.LESS, "strokeWidth": 2}, x=x, x2=svg.until("x2"), y=y),
        # A short stroke per iteration, or a vertical one from a boot's fastest to its slowest.
        svg.layer(iterations, stroke, x=x, y=y, **{end: svg.until(end)}),
        svg.layer(boots, point, x=x, y=y, shape=svg.shape_of("arm", arms)),
        svg.layer(names, below, x=x, y={"value": height + 8}, text=svg.name_of("arm")),
    ]
    chart = {"layer": layers, "width": width, "height": height}
    words = _strip_words(analysis, index, unit, divisor)
    return svg.draw(chart, key=f"{key}-{table.size}", title=sized(table.size, size_word), words=words)


def _strip_rows(
    points: Sequence[CellPoint], arms: Sequence[str], index: int, divisor: float
) -> tuple[svg.Rows, svg.Rows]:
    """Boot medians, and their iterations or ranges; boots are in the order run, from left to right."""
    boots: svg.Rows = []
    iterations: svg.Rows = []
    many = sum(len(point.iterations[index]) for point in points) > MOST_ITERATIONS
    for column, arm in enumerate(arms):
        mine = sorted((p for p in points if p.arm == arm), key=lambda p: (p.position or 0, p.block))
        step = 0.84 / max(1, len(mine))
        for place, point in enumerate(mine):
            x = column - 0.42 + step * (place + 0.5)
            timed = [ms / divisor for ms in point.iterations[index]]
            boots.append({"arm": arm, "x": x, "y": point.medians[index] / divisor})
            if many:
                iterations.append({"x": x, "y": min(timed), "y2": max(timed)})
            else:
                iterations += [{"x": x - step * 0.36, "x2": x + step * 0.36, "y": y} for y in timed]
    return boots, iterations


def strip_unit(analysis: Analysis, size: int) -> str:
    """The unit on the axis of that size's strip."""
    return _unit(analysis, [table.size for table in analysis.table].index(size))[0]


def _unit(analysis: Analysis, index: int) -> tuple[str, float]:
    """Seconds instead of long milliseconds; other units unchanged."""
    unit, medians = analysis.measure.unit, [point.medians[index] for point in analysis.points]
    if unit != "ms" or not medians or statistics.median(medians) < 10_000:
        return unit, 1.0
    return "s", 1000.0


def _strip_words(analysis: Analysis, index: int, unit: str, divisor: float) -> str:
    parts = []
    for cell in analysis.table[index].cells:
        if cell.median is None or cell.low is None or cell.high is None:
            parts.append(f"{cell.arm} {none_valid(analysis.replicate)}")
            continue
        low, middle, high = (_short(x / divisor) for x in (cell.low, cell.median, cell.high))
        spread = f"{plural(analysis.replicate)} {low} to {high} {unit}"
        parts.append(f"{cell.arm} median {middle}, {spread} (n = {cell.boots})")
    return f"Every timed iteration, form {analysis.form}, {direction(analysis.measure)}: {'; '.join(parts)}."


def _short(value: float) -> str:
    """At least three digits, integers with thousands separators."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.{max(0, 2 - int(math.log10(max(value, 1e-9))))}f}"


def order(analysis: Analysis, *, key: str, width: int) -> svg.Figure | None:
    """All sizes together, in percent, in the order run. None without points or their order.

    A slope here is an effect of time, not of topology.
    """
    points = [point for point in analysis.points if point.position is not None]
    if not points:
        return None
    arms = [cell.arm for cell in analysis.table[0].cells]
    rows: svg.Rows = [
        {
            "arm": point.arm,
            "block": point.block,
            "x": point.position,
            "y": math.expm1(point.from_column) * 100,
        }
        for point in points
    ]
    blocks = _blocks(rows)
    last = max(int(str(row["x"])) for row in rows)
    x = svg.quantity(
        "x",
        title="cell, in the order run (shaded: every second block)",
        scale={"domain": [0, last + 1], "nice": False},
        axis={"grid": False, "tickMinStep": 1},
    )
    y = svg.quantity(
        "y",
        title=["from its column's mean, %", direction(analysis.measure)],
        axis={"tickCount": 5, "titlePadding": 8},
    )
    legend = {
        "orient": "top",
        "columns": max(1, width // (40 + 7 * max(map(len, arms)))),
        "symbolFillColor": svg.OURS,
        "symbolStrokeColor": svg.OURS,
    }
    shaded = [row for row in blocks if row["odd"]]
    means = {"x": svg.quantity("x"), "x2": svg.until("x2"), "y": svg.quantity("mean")}
    point = {"type": "point", "filled": True, "size": 46, "opacity": 1, "color": svg.OURS}
    layers = [
        svg.layer(shaded, {"type": "rect", "color": svg.BAND}, x=svg.quantity("x"), x2=svg.until("x2")),
        svg.layer([{"zero": 0}], {"type": "rule", "color": svg.MUTED}, y=svg.quantity("zero")),
        svg.layer(blocks, {"type": "rule", "color": svg.INK, "strokeWidth": 2}, **means),
        svg.layer(rows, point, x=x, y=y, shape=svg.shape_of("arm", arms, legend)),
    ]
    chart = {"layer": layers, "width": width, "height": 210}
    values = [float(str(row["y"])) for row in rows]
    boots = counted(len(rows), analysis.replicate)
    words = (
        f"{boots} in the order run, form {analysis.form}: from {min(values):+.1f}% to {max(values):+.1f}% "
        f"of their own column's mean, {direction(analysis.measure)}. "
        f"{drift_words(analysis.drift)}"
    )
    title = f"{plural(analysis.replicate).capitalize()} in the order run"
    return svg.draw(chart, key=key, title=title, words=words)


def _blocks(rows: svg.Rows) -> svg.Rows:
    """One row per block: its start and end, and its mean."""
    made: svg.Rows = []
    for block in sorted({int(str(row["block"])) for row in rows}):
        mine = [row for row in rows if row["block"] == block]
        places = [int(str(row["x"])) for row in mine]
        mean = statistics.fmean(float(str(row["y"])) for row in mine)
        made.append({"x": min(places) - 0.5, "x2": max(places) + 0.5, "mean": mean, "odd": block % 2 == 1})
    return made
