"""`vnuma calibrate`: the instrument itself, measured on simulated studies whose truth is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import TableOrJson, TableOrJsonOption
from vnuma.cli.screen import echo

MOST_STUDIES = 50_000
"""More would need more memory than a small machine has, and no figure here needs it."""


def calibrate(
    studies: Annotated[
        int, typer.Option(min=100, max=MOST_STUDIES, help="Simulated studies for each row of the tables.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same results.")] = 20190601,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tables into this page, between its markers."),
    ] = None,
    format_: TableOrJsonOption = TableOrJson.TABLE,
) -> None:
    """Run the analysis on thousands of simulated studies whose truth is known, and show how often it errs.

    Measures nothing and touches no VM. Exit code 10 when a target is missed. 10,000 studies take about
    two minutes, 1,000 about 20 seconds, with simulation errors three times as large.

    Examples: vnuma calibrate; vnuma calibrate --studies 1000;
    vnuma calibrate --write docs/reference/calibration.md
    """
    from vnuma.analysis.calibration.run import calibrate as run
    from vnuma.analysis.calibration.targets import targets
    from vnuma.errors import InputError, ThresholdMet
    from vnuma.report.terminal.calibration_tables import BEGIN, END, as_json, as_page, as_text
    from vnuma.report.terminal.page_markers import write_between

    if write and not write.is_file():
        raise InputError(
            f"The page {write} does not exist.", fix="Name a page that contains this command's markers."
        )
    found = run(studies, seed, progress=lambda name: _say(f"simulating: {name}"))
    render = {TableOrJson.TABLE: as_text, TableOrJson.JSON: as_json}[format_]
    echo(render(found), nl=False)
    if write:
        try:
            write_between(write, BEGIN, END, as_page(found, _command(studies, seed)))
        except (OSError, ValueError) as error:
            raise InputError(f"The tables cannot be put into {write}: {error}") from error
    missed = [target.name for target in targets(found) if not target.met]
    if missed:
        raise ThresholdMet(
            f"The analysis misses {len(missed)} of its targets: {'; '.join(missed)}.",
            fix=(
                "Try another seed and more studies. If targets are still missed, do not trust this "
                "version's verdicts."
            ),
        )


def _command(studies: int, seed: int) -> str:
    return f"vnuma calibrate --studies {studies} --seed {seed}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
