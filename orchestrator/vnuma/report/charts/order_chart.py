"""The order plot: every boot against the mean of its own column, as it was run."""

from __future__ import annotations

import math
import statistics

import altair as alt

from vnuma.analysis.result import Analysis
from vnuma.domain.vm.plain_text import counted
from vnuma.domain.workloads.replicate import plural
from vnuma.report.charts.difference_charts import Rows
from vnuma.report.charts.svg import BAND, INK, MUTED, OURS, SHAPES, Figure, draw
from vnuma.report.model.drift import drift_words
from vnuma.report.model.words import direction


def order(analysis: Analysis, *, key: str, width: int, height: int = 210) -> Figure | None:
    """All sizes together, in percent, in the order run. None without points or without their order.

    What slopes here is time, not topology.
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
    x = alt.X("x:Q", title="cell, in the order run (shaded: every second block)")
    x = x.scale(domain=[0, last + 1], nice=False).axis(grid=False, tickMinStep=1)
    y = alt.Y("y:Q", title=["from its column's mean, %", direction(analysis.measure)])
    y = y.axis(tickCount=5, titlePadding=8)
    longest = max(map(len, arms))
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(arms))]
    legend = alt.Legend(
        orient="top",
        columns=max(1, width // (40 + 7 * longest)),
        symbolFillColor=OURS,
        symbolStrokeColor=OURS,
    )
    shape = alt.Shape("arm:N", scale=alt.Scale(domain=arms, range=shapes), legend=legend)
    layers = [
        alt.Chart(alt.InlineData(values=[row for row in blocks if row["odd"]]))
        .mark_rect(color=BAND)
        .encode(x="x:Q", x2="x2:Q"),
        alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(color=MUTED).encode(y="zero:Q"),
        alt.Chart(alt.InlineData(values=blocks))
        .mark_rule(color=INK, strokeWidth=2)
        .encode(x="x:Q", x2="x2:Q", y="mean:Q"),
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=46, opacity=1, color=OURS)
        .encode(x=x, y=y, shape=shape),
    ]
    chart = alt.layer(*layers).properties(width=width, height=height)
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
    """One row a block: where it begins and ends, and its mean."""
    made: Rows = []
    for block in sorted({int(str(row["block"])) for row in rows}):
        mine = [row for row in rows if row["block"] == block]
        places = [int(str(row["x"])) for row in mine]
        mean = statistics.fmean(float(str(row["y"])) for row in mine)
        made.append({"x": min(places) - 0.5, "x2": max(places) + 0.5, "mean": mean, "odd": block % 2 == 1})
    return made
