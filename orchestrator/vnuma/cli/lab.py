"""`vnuma lab`: the stand-in for vCenter, ESXi, guest and SQL Server."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    help="The embedded lab: a stand-in for vCenter, ESXi, guest and SQL Server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def up(
    scenario: Annotated[
        str, typer.Argument(help="paper, null, esxi8-default, or a scenario file (docs/lab.md).")
    ] = "paper",
    scenario_option: Annotated[str | None, typer.Option("--scenario", help="The same, as an option.")] = None,
    time_scale: Annotated[
        float | None, typer.Option(help="1: statements take as long as they say; 0: no time at all.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the lab's noise.")] = None,
) -> None:
    """Start a lab that stays until `vnuma lab down`.

    Examples: vnuma lab up; vnuma lab up esxi8-default; vnuma lab up my-scenario.yml
    """
    from vnuma import lab as labs

    labs.build(say=lambda text: typer.echo(text, err=True))
    state = labs.up(scenario_option or scenario, time_scale=time_scale, seed=seed)
    typer.echo(f"SIMULATED lab is up: scenario {state.scenario}, ESXi {state.esxi}, process {state.pid}.")
    for vm in state.vms:
        typer.echo(f"  {vm.path}  SQL Server at {vm.sql_host}:{vm.sql_port}")
    typer.echo(
        f"  vCenter at {state.host}:{state.port}, user {state.user}, password in {state.password_file}"
    )
    typer.echo("Next: vnuma plan studies/quick.yml")


@app.command()
def down() -> None:
    """Stop the lab."""
    from vnuma import lab as labs

    typer.echo("The lab has ended." if labs.down() else "No lab runs.")


@app.command()
def status() -> None:
    """Say whether a lab runs, and where."""
    from vnuma import lab as labs

    state = labs.status()
    if state is None:
        typer.echo("No lab runs. Start one: vnuma lab up")
        raise typer.Exit(1)
    typer.echo(
        f"Scenario {state.scenario}, ESXi {state.esxi}, {state.host}:{state.port}, process {state.pid}."
    )


@app.command()
def build() -> None:
    """Build the lab's program; quick when it is built already."""
    from vnuma import lab as labs

    typer.echo(str(labs.build(say=lambda text: typer.echo(text, err=True))))
