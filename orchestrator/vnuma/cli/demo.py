"""`vnuma demo`: a whole study on the lab, from nothing to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    scenario: Annotated[str, typer.Option(help="The lab's scenario.")] = "paper",
    study: Annotated[
        Path | None, typer.Option(help="The study to run; studies/quick.yml by default.")
    ] = None,
) -> None:
    """Start a lab, run a study on it, show the results, write the report, stop the lab.

    Examples: vnuma demo; vnuma demo --scenario null
    """
    import time

    from vnuma import assets, lab

    began = time.monotonic()
    labs = assets.home() / "demo-lab"
    lab.down(labs)
    state = lab.up(scenario, labs)
    path = study or assets.asset("studies/quick.yml")
    typer.echo(
        f"[4/4] Study    {path.name} on the lab, ready in {time.monotonic() - began:.1f} s\n", err=True
    )
    typer.echo("SIMULATED: the lab stands in for vCenter, ESXi, guest and SQL Server.", err=True)
    try:
        _measure(path, state.scenario, labs)
    finally:
        lab.down(labs)


def _measure(path: Path, scenario: str, labs: Path) -> None:
    import os

    from vnuma import assets
    from vnuma.cli import report, run
    from vnuma.cli.options import PermitOptions
    from vnuma.cli.screen import note

    os.environ["VNUMA_LAB_STATE"] = str(labs)
    run.run(
        str(path), yes=True, allowed=PermitOptions(), inventory=assets.asset("inventories/lab/lab.vnuma.yml")
    )
    report.report("latest")
    note("Next       vnuma init     for your own vCenter, on a test clone")
