"""The page's charts as separate pictures: SVG, PNG and PDF, light or dark, each with a caption."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from markupsafe import escape

from vnuma.analysis.result import Analysis
from vnuma.assets import asset
from vnuma.errors import EnvironmentProblem
from vnuma.isolation import IsolationError
from vnuma.report.charts.boot_charts import order, strip_unit, strips
from vnuma.report.charts.row_plots import all_sizes, differences_figure, each_size, scaling_charts
from vnuma.report.charts.svg import Figure, svg_as_pdf, svg_as_png
from vnuma.report.charts.topology_drawing import drawing, host_figures, host_map
from vnuma.report.model.arm_topologies import topologies_of
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import boots_words, direction, faster_side, named
from vnuma.report.published.published_comparison import published_exact
from vnuma.store.rows import Vm
from vnuma.words.plain_text import escaped, plural
from vnuma.words.provenance import banner

Scheme = Literal["light", "dark"]

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts that converters and word processors have, unlike a browser's own."""
_MARGIN, _LINE, _BORDER = 16, 17, 28
_LETTERS = {"title": 8.0, "head": 7.4, "simulated": 7.3, "text": 6.3, "note": 6.3}
"""Width of a letter in pixels for each kind of paragraph, with room to spare."""


def write_picture(folder: Path, name: str, svg: str) -> None:
    """Write a chart as SVG, PNG and PDF; a format that cannot be made becomes a text file with the reason."""
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    for kind, drawn in (("png", svg_as_png), ("pdf", svg_as_pdf)):
        try:
            (folder / f"{name}.{kind}").write_bytes(drawn(svg))
        except IsolationError as error:
            why = f"{name}.svg could not be made a {kind.upper()}: {error}.\n"
            (folder / f"{name}.{kind}.txt").write_text(why, encoding="utf-8")


def pictures(loaded: LoadedRun, scheme: Scheme = "light") -> Iterator[tuple[str, str]]:
    """Every chart of the primary analyses, by VM: a valid file name, and SVG text."""
    several = len(loaded.result.primary) > 1
    for vm, analysis in loaded.primary:
        prefix = f"{plain(analysis.vm)}-" if several else ""
        for name, figure, note in _figures(loaded, vm, analysis):
            yield f"{prefix}{name}", standalone(figure, note, loaded, scheme)


def _figures(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> Iterator[tuple[str, Figure, str]]:
    """(name, chart, caption: unit, n and direction)."""
    if not analysis.points:
        return
    reference = loaded.study.reference
    boots = boots_words(analysis, reference)
    measure, size_word = analysis.measure, loaded.result.design.size_word
    metric, better = f"{named(measure)}, form {analysis.form}", direction(measure)
    difference = (
        f"{metric}; difference from {reference} in %, {faster_side(measure)}; {boots}; lines: intervals that "
    )
    published = published_exact(analysis, loaded.study)
    difference += "hold for all arms together; shaded: too small to matter"
    yield "forest", differences_figure(all_sizes(analysis), analysis, key="forest", width=560), difference
    for size, plots in zip(analysis.sizes, each_size(analysis, published, size_word), strict=True):
        figure = differences_figure(plots, analysis, key=f"size-{size.size}", width=320)
        theirs = loaded.study.published if size.size in published else None
        hollow = f"; hollow: {theirs.title}" if theirs else ""
        yield f"size-{size.size}", figure, difference + hollow
    drawn_strips = strips(analysis, size_word, key="runs", width=560, height=260)
    for size, figure in zip(analysis.sizes, drawn_strips, strict=True):
        unit = strip_unit(analysis, size.size)
        one, all_ = analysis.replicate, plural(analysis.replicate)
        note = f"{metric}, {unit}, {better}; {boots}; marks: {one} medians, strokes: timed iterations, "
        yield f"iterations-{size.size}", figure, f"{note}bars: each arm's median; {all_} in the order run"
    if drawn := order(analysis, key="order", width=780):
        note = f"{metric}; each {analysis.replicate} from the mean of its column in %, {better}; {boots}; "
        yield "order", drawn, f"{note}a slope here is an effect of time, not of topology"
    for number, figure in enumerate(scaling_charts(loaded, analysis.vm, key="scaling", width=560), start=1):
        yield f"scaling-{number}", figure, figure.words.partition(". ")[0]
    host = host_map(loaded, vm)
    for number, figure in enumerate(host_figures(host, key="host") if host else (), start=1):
        yield f"host-{number}", figure, figure.words
    for index, arm in enumerate(topologies_of(loaded, vm)):
        note = f"{arm.counted} of {arm.planned} boots counted; vNUMA nodes: guest saw {arm.seen_words}, "
        figure = drawing(arm, key=f"topology-{index}")
        yield f"topology-{plain(arm.arm)}", figure, f"{note}predicted {arm.predicted_words}"


def standalone(figure: Figure, note: str, loaded: LoadedRun, scheme: Scheme) -> str:
    """The chart with title and caption, and whether it is simulated, as an SVG document."""
    simulated = [("simulated", banner(loaded.simulated))] if loaded.simulated else []
    heading = ("title", f"{loaded.run.name}: {figure.title}")
    width = max(size_of(figure.svg)[0] + 2 * _MARGIN, 420)
    return composed([heading, *simulated, ("note", note), [figure.svg]], width, scheme)


Block = tuple[str, str] | Sequence[str]
"""A paragraph with its kind, a key of _LETTERS; or drawings side by side, in as many lines as they need."""


def composed(blocks: Sequence[Block], width: float, scheme: Scheme = "light", *, a4: bool = False) -> str:
    """Paragraphs and drawings from top to bottom as an SVG document; `a4` makes it one upright page.

    A page that would be longer than A4 is drawn smaller.
    """
    y, parts = _MARGIN + 4.0, list[str]()
    for block in blocks:
        if isinstance(block, tuple):
            kind, text = block
            y += 8 if kind == "head" else 0
            for line in textwrap.wrap(escaped(text), int((width - 2 * _MARGIN) / _LETTERS[kind])):
                y += _LINE
                parts.append(f'<text class="{kind}" x="{_MARGIN}" y="{y - 4:g}">{escape(line)}</text>')
        else:
            y = _side_by_side(block, y + 8, width, parts)
    y += _MARGIN
    size, view = f'width="{width:.0f}" height="{y:.0f}"', f"0 0 {width:.0f} {y:.0f}"
    if a4:
        across = width + 2 * _BORDER
        size = 'width="595" height="842"'
        view = f"{-_BORDER} {-_BORDER} {across:.0f} {max(y + 2 * _BORDER, across * 2**0.5):.0f}"
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{view}">'
        f'<style>{_style()}</style><rect x="-100%" y="-100%" width="300%" height="300%" fill="var(--paper)"/>'
        f"{''.join(parts)}</svg>"
    )
    colours = palette(scheme)
    document = re.sub(r"var\(--([a-z-]+)\)", lambda match: colours.get(match[1], match[0]), document)
    return document.replace("system-ui, sans-serif", FONT)


def one_page(blocks: Iterable[Block], of: str, kind: Literal["png", "pdf"] = "pdf") -> bytes:
    """One page of A4. Raises EnvironmentProblem where it cannot be drawn."""
    page = composed(list(blocks), 794, a4=True)
    try:
        return svg_as_png(page) if kind == "png" else svg_as_pdf(page)
    except IsolationError as error:
        raise EnvironmentProblem(
            f"The page of {of} could not be drawn: {error}.", fix="Take another format: HTML."
        ) from error


def _side_by_side(drawings: Sequence[str], y: float, width: float, parts: list[str]) -> float:
    """Add the drawings; returns where they end."""
    x, tallest = float(_MARGIN), 0.0
    for drawn in drawings:
        wide, tall = size_of(drawn)
        if x > _MARGIN and x + wide > width - _MARGIN:
            x, y, tallest = _MARGIN, y + tallest + _MARGIN, 0.0
        parts.append(str(drawn).replace("<svg", f'<svg x="{x:g}" y="{y:g}"', 1))
        x, tallest = x + wide + 2 * _MARGIN, max(tallest, tall)
    return y + tallest


def size_of(svg: str) -> tuple[float, float]:
    """Width and height in pixels, as the document states them."""
    head = re.match(r"<svg[^>]*>", svg)
    if head is None:
        raise ValueError("a chart begins with <svg")
    width, height = (re.search(rf'\b{name}="([\d.]+)"', head[0]) for name in ("width", "height"))
    if width is None or height is None:
        raise ValueError("a chart has a width and a height")
    return float(width[1]), float(height[1])


@lru_cache(maxsize=2)
def palette(scheme: Scheme) -> dict[str, str]:
    """The page's colours by name, from its style sheet."""
    blocks = re.findall(r":root \{(.*?)\}", _sheet(), flags=re.DOTALL)
    named = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[0]))
    if scheme == "dark":
        named |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[1]))
    return named


def _style() -> str:
    own = (
        f"text.title {{ font: bold 15px {FONT}; fill: var(--ink); }}"
        f"text.simulated {{ font: bold 12px {FONT}; fill: var(--warn); }}"
        f"text.note {{ font: 12px {FONT}; fill: var(--muted); }}"
        f"text.text {{ font: 12px {FONT}; fill: var(--ink); }}"
        f"text.head {{ font: bold 13px {FONT}; fill: var(--ink); }}"
        f".differences text {{ font: 12px {FONT}; fill: var(--ink); }}"
        ".differences .arm { text-anchor: end; } .differences .side { text-anchor: middle; }"
    )
    return own + "".join(line for line in _sheet().splitlines() if line.startswith((".topology", ".plot")))


@lru_cache(maxsize=1)
def _sheet() -> str:
    return (asset("templates") / "style.css").read_text(encoding="utf-8")


def plain(name: str) -> str:
    """A name that is valid on any file system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)
