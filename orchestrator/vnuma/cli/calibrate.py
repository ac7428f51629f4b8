"""`vnuma calibrate`: the instrument itself, measured on simulated studies whose truth is known."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vnuma.cli.options import TableOrJsonOption
from vnuma.cli.screen import echo, say

MOST_STUDIES = 50_000
"""More would exceed a small machine's memory, and no figure here needs it."""


def calibrate(
    studies: Annotated[
        int, typer.Option(min=100, max=MOST_STUDIES, help="Simulated studies for each row of the tables.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same results.")] = 20190601,
    format_: TableOrJsonOption = "table",
) -> None:
    """Run the analysis on thousands of simulated studies whose truth is known, and show how often it errs.

    Measures nothing and touches no VM. Exit code 10 when a target is missed. 10,000 studies take about
    two minutes, 1,000 about 20 seconds, with simulation errors three times as large.

    Examples: vnuma calibrate; vnuma calibrate --studies 1000
    """
    from vnuma.analysis.calibration.targets import calibrate as run
    from vnuma.analysis.calibration.targets import targets
    from vnuma.errors import ThresholdMet
    from vnuma.report.terminal.calibration_tables import as_json, as_text

    found = run(studies, seed, progress=lambda name: say(f"simulating: {name}", sys.stderr))
    render = {"table": as_text, "json": as_json}[format_]
    echo(render(found), nl=False)
    missed = [target.name for target in targets(found) if not target.met]
    if missed:
        raise ThresholdMet(
            f"The analysis misses {len(missed)} of its targets: {'; '.join(missed)}.",
            fix=(
                "Try another seed and more studies. If targets are still missed, do not trust this "
                "version's verdicts."
            ),
        )
