"""Differences from the reference with their intervals, over all sizes and at each.

Each chart shows unit, n and direction. Arms keep the study's order and their shape throughout. Published
figures are hollow, ours filled; the equivalence band is shaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from vnuma.analysis.measure import Measure
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import limits, percent, signed
from vnuma.domain.vm.percent import percent_text
from vnuma.domain.workloads.replicate import none_valid
from vnuma.domain.workloads.sizes import sized
from vnuma.report.charts.svg import (
    BAND,
    INK,
    LETTER,
    MUTED,
    OURS,
    Figure,
    Rows,
    Spec,
    draw,
    layer,
    name_of,
    quantity,
    shape_of,
    until,
)
from vnuma.report.model.words import faster_side, places

_ROW = 30
"""Height of a row in pixels."""


def forest(analysis: Analysis, *, key: str, width: int) -> Figure:
    """All sizes together: every arm's difference from the reference with its interval."""
    rows = difference_rows(analysis.arms, None, analysis.table[0].cells[0].arm)
    reference = analysis.table[0].cells[0].arm
    level = percent_text(analysis.arms[0].verdict.level) if analysis.arms else ""
    chart = _differences(rows, extent_of([analysis.arms], ()), analysis, width, with_text=False)
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
    """For each size: every arm's difference from the reference, next to the published one.

    `published` are other people's figures, by size and arm, in the unit of the measure.
    """
    reference = analysis.table[0].cells[0].arm
    width = max(80, width - LETTER * max(0, max(len(cell.arm) for cell in analysis.table[0].cells) - 5))
    known = [published_differences(published.get(size.size, {}), reference) for size in analysis.sizes]
    extent = extent_of([size.arms for size in analysis.sizes], [x for item in known for x in item.values()])
    figures = []
    for size, paper in zip(analysis.sizes, known, strict=True):
        rows = difference_rows(size.arms, paper, reference)
        chart = _differences(rows, extent, analysis, width, with_text=True)
        level = percent_text(size.arms[0].verdict.level) if size.arms else ""
        words = f"Difference from {reference}, %, form {analysis.form}, {level} intervals; "
        words += f"{faster_side(analysis.measure)}. "
        title = sized(size.size, size_word)
        figures.append(draw(chart, key=f"{key}-{size.size}", title=title, words=words + _said(rows)))
    return figures


class Judged(Protocol):
    """An arm with its verdict against the reference."""

    @property
    def arm(self) -> str:
        """Its name."""

    @property
    def verdict(self) -> Verdict:
        """Against the reference."""


def difference_rows(arms: Iterable[Judged], published: dict[str, float] | None, reference: str) -> Rows:
    """The reference and each arm: `arm`, `label`, and in percent `value`, `low`, `high`, `published`."""
    shown = list(arms)
    margins = places([arm.verdict.interval for arm in shown], shown[0].verdict.margin if shown else 0.01)
    rows: Rows = [{"arm": reference, "value": 0.0, "label": "reference"}]
    for arm, decimals in zip(shown, margins, strict=True):
        verdict = arm.verdict
        row: dict[str, object] = {"arm": arm.arm, "label": none_valid(verdict.replicate)}
        if verdict.ratio is not None:
            row |= {"value": percent(verdict.ratio), "label": signed(verdict.ratio, decimals)}
        if verdict.ratio is not None and verdict.interval is not None:
            row |= {"low": percent(verdict.interval.low), "high": percent(verdict.interval.high)}
            row["label"] = f"{signed(verdict.ratio, decimals)} ({limits(verdict.interval, decimals)})"
        if published and arm.arm in published:
            row["published"] = published[arm.arm]
        rows.append(row)
    return rows


def published_differences(known: Mapping[str, float], reference: str) -> dict[str, float]:
    """Published differences from the reference in percent at one size."""
    if reference not in known:
        return {}
    return {arm: (x / known[reference] - 1) * 100 for arm, x in known.items() if arm != reference}


def extent_of(groups: Iterable[Sequence[Judged]], more: Iterable[float]) -> tuple[float, float]:
    """One scale for adjacent charts, always including the equivalence band."""
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
) -> Spec:
    arms = [str(row["arm"]) for row in rows]
    margin = analysis.margin
    scale = {"domain": list(extent), "nice": False, "zero": False}
    axis = {
        "tickCount": max(3, width // 55),
        "grid": True,
        "labelExpr": "(datum.value > 0 ? '+' : '') + datum.label",
        "labelFlush": False,
    }
    x = quantity("value", scale=scale, title=difference_title(analysis.measure), axis=axis)
    y = name_of(
        "arm",
        sort=arms,
        title=None,
        scale={"domain": arms},
        axis={"ticks": False, "domain": False, "labelPadding": 8},
    )
    band: Rows = [{"low": (1 / (1 + margin) - 1) * 100, "high": margin * 100}]
    point = {"type": "point", "opacity": 1}
    layers = [
        layer(band, {"type": "rect", "color": BAND}, x=quantity("low", scale=scale), x2=until("high")),
        layer([{"zero": 0}], {"type": "rule", "color": MUTED}, x=quantity("zero")),
        layer(
            [row for row in rows if "low" in row],
            {"type": "rule", "color": OURS, "strokeWidth": 2.5},
            x=quantity("low"),
            x2=until("high"),
            y=y,
        ),
        layer(
            [row for row in rows if "value" in row],
            {**point, "filled": True, "size": 90, "color": OURS},
            x=x,
            y=y,
            shape=shape_of("arm", arms),
        ),
        layer(
            [row for row in rows if "published" in row],
            {**point, "filled": False, "size": 46, "color": INK, "strokeWidth": 1.5, "yOffset": 10}
            | {"shape": "diamond"},
            x=quantity("published"),
            y=y,
        ),
    ]
    if with_text:
        text = {"type": "text", "align": "left", "baseline": "middle"}
        layers.append(layer(rows, text, x={"value": width + 8}, y=y, text=name_of("label")))
    # Leave room, since the reader's font may be wider than the one used for measuring text.
    padding = {"left": 6, "top": 6, "bottom": 6, "right": 46 if with_text else 10}
    return {"layer": layers, "width": width, "height": _ROW * len(rows), "padding": padding}


def difference_title(measure: Measure) -> str:
    """The axis shows which direction is better."""
    left, right = ("faster", "slower") if measure.better == "lower" else ("slower", "faster")
    return f"← {left} · difference, % · {right} →"


def _said(rows: Rows) -> str:
    return "; ".join(f"{row['arm']} {row['label']}" for row in rows) + "."
