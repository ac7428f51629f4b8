"""`vnuma report`: one self-contained page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from vnuma.cli.options import RunArgument, StoreOption, opened_store
from vnuma.cli.screen import echo


def report(
    run: RunArgument = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; reports/RUN.html by default.")
    ] = None,
    format_: Annotated[
        Literal["html", "markdown", "png", "pdf"],
        typer.Option("--format", help="The whole report; or one page with answer, verdicts and limits."),
    ] = "html",
    store: StoreOption = None,
) -> None:
    """Write a run as one HTML file that needs no network, or as Markdown, PNG or PDF.

    Figures of the lab are marked, also in the file name.

    Examples: vnuma report; vnuma report quick.4 -o quick.html; vnuma report --format pdf
    """
    from vnuma.report.model.model import load_run
    from vnuma.report.page.render import write_report

    loaded = load_run(opened_store(store), run)
    for path in write_report(loaded, output, format_):
        echo(f"Report     {path}")
