"""The page of a comparison: each arm's gap to the reference in two runs, as text and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from vnuma import __version__
from vnuma.domain.vm.provenance import banner
from vnuma.report.charts.row_plots import RowPlots, of_gaps
from vnuma.report.comparison.comparability import Difference
from vnuma.report.comparison.pair import Comparison, Pair
from vnuma.report.comparison.text import CAUTION, Condition, estimate_words, judged_words, what_words
from vnuma.report.model.words import verdict_kind
from vnuma.report.page.page import verdict_symbol
from vnuma.report.page.template import environment, filled, write_file


@dataclass(frozen=True)
class GapRow:
    """One arm: its gap as text and drawn, and both runs' measurements."""

    arm: str
    kind: str
    symbol: str
    gap: str
    own: str
    boots: str
    plot: Markup


@dataclass(frozen=True)
class PairPart:
    """One VM in both runs."""

    vm: str
    what: str
    rows: tuple[GapRow, ...]
    plots: RowPlots
    differ: tuple[Difference, ...]


def write_comparison(found: Comparison, condition: Condition | None, path: Path) -> None:
    """Write the page: one file that works offline and without scripts. Raises InputError."""
    runs = (found.before, found.after)
    text = filled(
        "comparison.html.j2",
        "style.css",
        "page.js",
        banner=next((banner(run.simulated) for run in runs if run.simulated), ""),
        version=__version__,
        **_values(found, condition),
    )
    write_file(path, text, "The page")


def compared_html(found: Comparison) -> str:
    """The comparison as part of another page."""
    return environment().get_template("parts/compared.html.j2").render(**_values(found, None))


def _values(found: Comparison, condition: Condition | None) -> dict[str, object]:
    pairs = [_part(found, pair, condition) for pair in found.pairs]
    return {"found": found, "pairs": pairs, "caution": CAUTION}


def _part(found: Comparison, pair: Pair, condition: Condition | None) -> PairPart:
    plots = of_gaps(pair.changes, found.before.result.design.measure(found.before.study.workload.forms[0]))
    return PairPart(
        pair.after.name,
        what_words(found, pair),
        tuple(_rows(pair, plots, condition)),
        plots,
        pair.differ,
    )


def _rows(pair: Pair, plots: RowPlots, condition: Condition | None) -> Iterator[GapRow]:
    drawn = {row.arm: row.plot for row in plots.rows}
    for change in pair.changes:
        gap = change.gap
        yield GapRow(
            change.arm,
            verdict_kind(gap) if gap else "reference",
            verdict_symbol(gap) if gap else "",
            judged_words(gap, condition) if gap else "the reference",
            estimate_words(change.own),
            f"{change.before} and {change.after}",
            drawn[change.arm],
        )
