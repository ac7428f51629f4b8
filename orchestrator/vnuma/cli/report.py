"""`vnuma report`: one self-contained page about a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from vnuma.cli.options import ReadRunArgument, StoreOption, opened_run
from vnuma.cli.screen import echo
from vnuma.errors import UsageError


def report(
    run: ReadRunArgument = "latest",
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

    Examples: vnuma report; vnuma report quick.4 -o quick.html; vnuma report --format pdf;
    vnuma report quick.4.vnuma.zip
    """
    _refuse_contradiction(run, output, format_)
    from vnuma.report.model.model import load_run
    from vnuma.report.page.render import write_report

    loaded = load_run(*opened_run(run, store))
    for path in write_report(loaded, output, format_):
        echo(f"Report     {path}")


_FORMAT_OF = {".html": "html", ".htm": "html", ".md": "markdown", ".png": "png", ".pdf": "pdf"}


def _refuse_contradiction(run: str, output: Path | None, format_: str) -> None:
    """Raise UsageError for a file whose ending says another format: programs could not open it."""
    named = _FORMAT_OF.get(output.suffix.lower(), format_) if output else format_
    if named != format_:
        raise UsageError(
            f"{output} is the name of a file in format {named}, but --format is {format_}.",
            fix=f"vnuma report {run} --format {named} -o {shlex.quote(str(output))}",
        )
