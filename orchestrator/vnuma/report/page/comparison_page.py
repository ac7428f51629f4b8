"""The page of a comparison: each arm's gap to the reference in two runs, as text and drawn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vnuma import __version__
from vnuma.report.charts.row_plots import of_gaps
from vnuma.report.comparison.two_runs import (
    Comparison,
    Condition,
    caution,
    estimate_words,
    judged_words,
    pair_answer,
    what_words,
)
from vnuma.report.model.words import verdict_kind
from vnuma.report.page.page import environment, filled, verdict_symbol, write_file
from vnuma.words.provenance import banner


def write_comparison(found: Comparison, condition: Condition | None, path: Path) -> None:
    """Write the page: one file that works offline and without scripts. Raises InputError."""
    text = filled(
        "comparison.html.j2",
        "style.css",
        "page.js",
        banner=next((banner(run.simulated) for run in found.runs if run.simulated), ""),
        version=__version__,
        **_values(found, condition),
    )
    write_file(path, text, "The page")


def compared_html(found: Comparison) -> str:
    """The comparison as part of another page."""
    return environment().get_template("parts/compared.html.j2").render(**_values(found, None))


def _values(found: Comparison, condition: Condition | None) -> dict[str, object]:
    plots = [of_gaps(pair.changes, found.measure) for pair in found.pairs]
    return {
        "found": found,
        "pairs": [
            (pair, what_words(found, pair), each, {row.arm: row.plot for row in each.rows})
            for pair, each in zip(found.pairs, plots, strict=True)
        ],
        "caution": caution(found),
        "kind": verdict_kind,
        "answer": pair_answer,
        "symbol": verdict_symbol,
        "judged": partial(judged_words, condition=condition),
        "estimate": estimate_words,
    }
