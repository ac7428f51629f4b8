"""`vnuma reanalyse`: what a published table of medians can and cannot show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from vnuma.cli.screen import echo


def reanalyse(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV: rows_per_side, then one column an arm, in ms.")
    ],
    format_: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", help="table, json or markdown.")
    ] = "table",
) -> None:
    """Re-analyse a published table of medians: percentages, the effect of drift alone, what it can show.

    Examples: vnuma reanalyse studies/published/dakic2019.csv
    """
    from vnuma.report.published.published import as_json, as_page, as_text, read_publication

    found = read_publication(table)
    render = {
        "table": as_text,
        "json": as_json,
        "markdown": as_page,
    }
    echo(render[format_](found), nl=False)
