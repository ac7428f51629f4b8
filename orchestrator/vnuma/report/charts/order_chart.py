"""The order plot: every boot relative to the mean of its own column, in the order run."""

from __future__ import annotations

import math
import statistics

from vnuma.analysis.result import Analysis
from vnuma.domain.vm.plain_text import counted
from vnuma.domain.workloads.replicate import plural
from vnuma.report.charts.svg import (
    BAND,
    INK,
    MUTED,
    OURS,
    Figure,
    Rows,
    draw,
    layer,
    quantity,
    shape_of,
    until,
)
from vnuma.report.model.words import direction, drift_words


def order(analysis: Analysis, *, key: str, width: int, height: int = 210) -> Figure | None:
    """All sizes together, in percent, in the order run. None without points or their order.

    A slope here is an effect of time, not of topology.
    """
    points = [point for point in analysis.points if point.position is not None]
    if not points:
        return None
    arms = [cell.arm for cell in analysis.table[0].cells]
    rows: Rows = [
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
    x = quantity(
        "x",
        title="cell, in the order run (shaded: every second block)",
        scale={"domain": [0, last + 1], "nice": False},
        axis={"grid": False, "tickMinStep": 1},
    )
    y = quantity(
        "y",
        title=["from its column's mean, %", direction(analysis.measure)],
        axis={"tickCount": 5, "titlePadding": 8},
    )
    legend = {
        "orient": "top",
        "columns": max(1, width // (40 + 7 * max(map(len, arms)))),
        "symbolFillColor": OURS,
        "symbolStrokeColor": OURS,
    }
    shaded = [row for row in blocks if row["odd"]]
    means = {"x": quantity("x"), "x2": until("x2"), "y": quantity("mean")}
    point = {"type": "point", "filled": True, "size": 46, "opacity": 1, "color": OURS}
    layers = [
        layer(shaded, {"type": "rect", "color": BAND}, x=quantity("x"), x2=until("x2")),
        layer([{"zero": 0}], {"type": "rule", "color": MUTED}, y=quantity("zero")),
        layer(blocks, {"type": "rule", "color": INK, "strokeWidth": 2}, **means),
        layer(rows, point, x=x, y=y, shape=shape_of("arm", arms, legend)),
    ]
    chart = {"layer": layers, "width": width, "height": height}
    values = [float(str(row["y"])) for row in rows]
    boots = counted(len(rows), analysis.replicate)
    words = (
        f"{boots} in the order run, form {analysis.form}: from {min(values):+.1f}% to {max(values):+.1f}% "
        f"of their own column's mean, {direction(analysis.measure)}. "
        f"{drift_words(analysis.drift)}"
    )
    title = f"{plural(analysis.replicate).capitalize()} in the order run"
    return draw(chart, key=key, title=title, words=words)


def _blocks(rows: Rows) -> Rows:
    """One row per block: its start and end, and its mean."""
    made: Rows = []
    for block in sorted({int(str(row["block"])) for row in rows}):
        mine = [row for row in rows if row["block"] == block]
        places = [int(str(row["x"])) for row in mine]
        mean = statistics.fmean(float(str(row["y"])) for row in mine)
        made.append({"x": min(places) - 0.5, "x2": max(places) + 0.5, "mean": mean, "odd": block % 2 == 1})
    return made
