"""`vnuma demo`: a whole study on the lab, from nothing to the report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from vnuma import assets
from vnuma.cli import report, run
from vnuma.cli.options import PermitOptions, read_study
from vnuma.cli.screen import note
from vnuma.errors import CellsMissing, EnvironmentProblem, Interrupted
from vnuma.file_lock import lock_within


def demo(
    scenario: Annotated[str, typer.Option(help="The lab's scenario.")] = "esxi8-default",
    study: Annotated[Path | None, typer.Option(help="The study to run; studies/demo.yml by default.")] = None,
) -> None:
    """Start a lab, run a study on it, show the results, write the report, stop the lab.

    Examples: vnuma demo; vnuma demo --scenario paper --study studies/quick.yml
    """
    from vnuma import lab

    path = study or assets.asset("studies/demo.yml")
    read_study(path)  # refuses a wrong file before anything starts
    began = time.monotonic()
    labs = assets.home() / "demo-lab"
    with _alone(labs):
        lab.down(labs)
        lab.build(say=lambda text: typer.echo(text, err=True))
        state = lab.up(scenario, labs)
        typer.echo(
            f"[4/4] Study    {path.name} on the lab, ready in {time.monotonic() - began:.1f} s\n", err=True
        )
        typer.echo("SIMULATED: the lab stands in for vCenter, ESXi, guest and SQL Server.", err=True)
        try:
            _measure(path, state.scenario, labs)
        finally:
            lab.down(labs)


@contextmanager
def _alone(labs: Path) -> Iterator[None]:
    """Refuse a second demo, which would stop the lab of the first. Raises EnvironmentProblem."""
    labs.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (labs / "demo.lock").open("w", encoding="utf-8") as lock:
        if not lock_within(lock.fileno()):
            raise EnvironmentProblem(
                "Another demo is running, and there is one lab for demos.",
                fix="Follow it: vnuma status. To end it: vnuma stop latest",
            )
        yield


def _measure(path: Path, scenario: str, labs: Path) -> None:
    os.environ["VNUMA_LAB_STATE"] = str(labs)
    where = assets.asset("inventories/lab/lab.vnuma.yml")
    try:
        run.run(str(path), yes=True, allowed=PermitOptions(), inventory=where)
    except (CellsMissing, Interrupted) as error:
        error.fix = "vnuma demo starts anew: the lab of this run has ended, so it cannot be resumed."
        raise
    report.report("latest")
    note("Next       vnuma init     for your own vCenter, on a test clone")
