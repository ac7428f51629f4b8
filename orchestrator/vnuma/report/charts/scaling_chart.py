"""Scaling curves as charts: throughput over load, one line per arm or size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from vnuma.domain.workloads.metric import medians
from vnuma.report.charts import svg
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import Curve, curves
from vnuma.report.model.words import boots_words, direction, named

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
    title = f"{unit} by {over}, form {form}"
    words = f"{of}. " + " ".join(_point_texts(found))
    return svg.draw(chart, key=key, title=title, words=words)


def _point_texts(found: Iterable[Curve]) -> Iterator[str]:
    for curve in found:
        points = ", ".join(f"{rate:,.4g} at {load:,}" for load, rate in curve.found.points)
        yield f"{curve.at}: {points}."
