"""`vnuma results`: medians and differences of a run."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from vnuma.cli.options import ReadRunArgument, StoreOption, opened_run, opened_store
from vnuma.cli.screen import USUAL, echo, note, say, width
from vnuma.errors import UsageError
from vnuma.report.model.grid import as_csv, as_markdown, as_screen


def results(
    run: ReadRunArgument = "latest",
    format_: Annotated[
        Literal["table", "csv", "json", "markdown"],
        typer.Option("--format", help="What to print."),
    ] = "table",
    table: Annotated[
        Literal["results", "figures", "waits", "samples"],
        typer.Option(
            help="For --format csv. results: the comparisons; figures: the workload's other figures; waits: "
            "shares of wait types by arm; samples: every iteration. `vnuma schema results --format "
            "markdown` explains the columns."
        ),
    ] = "results",
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help=(
                "Also show what is not used for the verdict: other forms and figures, published ones, other "
                "methods."
            ),
        ),
    ] = False,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Every run of RUN's study, or of the study RUN: differences, and what changed around them.",
        ),
    ] = False,
    store: StoreOption = None,
) -> None:
    """Show medians per size and topology, differences from the reference, and the verdicts.

    Examples: vnuma results; vnuma results --all; vnuma results quick.4.vnuma.zip;
    vnuma results --history quick; vnuma results quick.4 --format csv --table samples > all.csv
    """
    if history:
        echo(_history(run, format_, store), nl=False)
        return
    from vnuma.report.export.results import as_json
    from vnuma.report.model.model import load_run
    from vnuma.report.tables.csv_export import TABLES
    from vnuma.report.terminal import run_text

    _refuse_contradictions(run, format_, table, everything=everything)
    opened, name = opened_run(run, store)
    loaded = load_run(opened, name)
    if table == "samples":
        from vnuma.report.archive.raw import print_samples

        print_samples(opened, loaded, sys.stdout)
        return
    if format_ != "table":
        render = {
            "csv": TABLES[table].of,
            "json": as_json,
            "markdown": run_text.as_markdown,
        }
        echo(render[format_](loaded), nl=False)
        return
    text = run_text.all_as_text if everything else run_text.brief_as_text
    say(text(loaded, min(width() or USUAL, USUAL)).rstrip("\n"))
    if not everything:
        shown = loaded.argument
        note(f"More    vnuma results {shown} --all    vnuma report {shown}")


def _history(named: str, format_: str, store: str | None) -> str:
    """The table as text. Raises UsageError for JSON, which each run's results have."""
    from vnuma.report.tables.history import study_history

    if format_ == "json":
        raise UsageError("--history is a table.", fix="vnuma results --history STUDY --format csv")
    writers = {"table": as_screen, "csv": as_csv, "markdown": as_markdown}
    return writers[format_](study_history(opened_store(store), named))


def _refuse_contradictions(run: str, format_: str, table: str, *, everything: bool) -> None:
    """Raise UsageError for options that do not go together."""
    if table != "results" and format_ != "csv":
        raise UsageError(
            f"--table {table} needs --format csv.", fix=f"vnuma results {run} --format csv --table {table}"
        )
    if everything and format_ != "table":
        raise UsageError(
            f"--all adds to the table; --format {format_} includes everything already.",
            fix=f"vnuma results {run} --all",
        )
