"""`vnuma lab`: the stand-in for vCenter, ESXi, guest and SQL Server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma import assets
from vnuma.cli.options import TextOrJsonOption
from vnuma.cli.screen import echo_json, require_yes, say
from vnuma.cli.verb import group, subcommand
from vnuma.errors import EnvironmentProblem, InputError, UsageError
from vnuma.words.provenance import in_json

if TYPE_CHECKING:
    from vnuma.lab import LabState

app = group("The embedded lab: it stands in for vCenter, ESXi, guest and SQL Server, and for Linux machines.")


@subcommand(app)
def up(
    scenario: Annotated[
        str,
        typer.Argument(
            help="paper, null, esxi7-default, esxi8-default, standalone, shea2012, adkin2014, chang2005, "
            "closson2009, or a file (docs/lab.md)."
        ),
    ] = "paper",
    time_scale: Annotated[
        float | None, typer.Option(help="1: statements take as long as they report; 0: they take no time.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the lab's noise.")] = None,
) -> None:
    """Start a lab that stays until `vnuma lab down`.

    Examples: vnuma lab up; vnuma lab up esxi8-default; vnuma lab up mine.yml
    """
    from vnuma import lab as labs

    labs.build(say=lambda text: typer.echo(text, err=True))
    state = labs.up(scenario, time_scale=time_scale, seed=seed)
    say("\n".join(_up_lines(state)))


def _up_lines(state: LabState) -> Iterator[str]:
    """What is running and where, and the next command, depending on the kind of machines."""
    yield f"SIMULATED lab is up: scenario {state.scenario}, ESXi {state.esxi}, process {state.pid}."
    yield from (f"  {vm.path}  SQL Server at {vm.sql_host}:{vm.sql_port}" for vm in state.vms)
    yield from (f"  {one.name}  Linux, SSH at {one.host}:{one.port}" for one in state.machines)
    yield f"  vSphere at {state.host}:{state.port}, user {state.user}, password in {state.password_file}"
    if state.machines and not state.vms:
        study = assets.typed("studies/closson2009.yml")
        yield f"Next: vnuma doctor {state.machines[0].name}; then a copy of {study} with"
        yield f"      vm: {state.machines[0].name}"
        return
    yield f"Next: vnuma plan {_study_of(state)}"


def _study_of(lab: LabState) -> str:
    """The shipped study for a lab: chang2005 for chang2005-null, otherwise by its release of ESXi."""
    named = assets.asset("studies") / f"{lab.scenario.partition('-')[0]}.yml"
    usual = "demo.yml" if lab.esxi.startswith("8") else "quick.yml"
    return assets.typed(f"studies/{named.name if named.exists() else usual}")


@subcommand(app)
def down(
    yes: Annotated[bool, typer.Option("--yes", help="Stop it even while a run uses it.")] = False,
) -> None:
    """Stop the lab. It asks first if a run uses it, because the run would lose its VMs.

    Examples: vnuma lab down; vnuma lab down --yes
    """
    from vnuma import lab as labs

    if not yes and labs.status():
        _refuse_under_a_run()
    typer.echo("The lab has ended." if labs.down() else "No lab is running.")


def _refuse_under_a_run() -> None:
    from vnuma.engine.run.progress import overview

    using = [line.run for line in overview(None).runs if line.alive and line.simulated]
    if not using:
        return
    words = f"{', '.join(using)} is measuring on a lab. Its VMs cannot be restored without the lab."
    if not sys.stdin.isatty():
        raise InputError(
            words, fix="Wait (vnuma status), or stop the run (vnuma stop RUN), or: vnuma lab down --yes"
        )
    require_yes(f"{words} Stop the lab anyway?")


@subcommand(app)
def status(format_: TextOrJsonOption = "text") -> None:
    """Show whether a lab is running, and where."""
    from vnuma import lab as labs

    state = labs.status()
    if state is None:
        raise EnvironmentProblem("No lab is running.", fix="vnuma lab up")
    if format_ == "json":
        at = {"host": state.host, "port": state.port, "esxi": state.esxi, "pid": state.pid}
        echo_json({"schema": "vnuma/lab/1", **in_json(state.scenario), **at})
        return
    typer.echo(
        f"Scenario {state.scenario}, ESXi {state.esxi}, {state.host}:{state.port}, process {state.pid}."
    )


@subcommand(app)
def build() -> None:
    """Build the lab's program; immediate when it is already built."""
    from vnuma import lab as labs

    typer.echo(str(labs.build(say=lambda text: typer.echo(text, err=True))))


@subcommand(app)
def fault(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="Kind of fault (docs/lab.md); none: list all kinds.")
    ] = None,
    vm: Annotated[str | None, typer.Option(help="Only this VM.")] = None,
    boot: Annotated[int | None, typer.Option(help="Only the power-on with this number.")] = None,
    times: Annotated[int | None, typer.Option(help="How often it strikes; 0: always; default: once.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A field of this kind of fault, KEY=VALUE."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Clear all faults.")] = False,
) -> None:
    """Make the running lab fail: list, add or clear faults.

    Examples: vnuma lab fault; vnuma lab fault session_expired;
    vnuma lab fault vcenter_restart --set seconds=5; vnuma lab fault --clear
    """
    from vnuma import lab as labs

    state = labs.status()
    if state is None:
        raise EnvironmentProblem("No lab is running.", fix="vnuma lab up")
    if clear:
        if kind:
            raise UsageError(
                "--clear clears every fault, so it takes no kind.", fix="vnuma lab fault --clear"
            )
        typer.echo(f"{labs.faults.clear(state)} faults cleared.")
        return
    if kind is None:
        lines = [_fault_line(item) for item in labs.faults.listed(state)]
        typer.echo("\n".join(lines) or "No fault is set.")
        return
    wanted = {"kind": kind, "vm": vm, "boot": boot, "times": times} | dict(map(_field, set_ or ()))
    added = labs.faults.add(state, {key: value for key, value in wanted.items() if value is not None})
    typer.echo(_fault_line(added))


def _field(text: str) -> tuple[str, object]:
    """KEY=VALUE, with numbers parsed."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text} is not KEY=VALUE.", fix="vnuma lab fault slow --set factor=1.5")
    try:
        return key, float(value) if "." in value else int(value)
    except ValueError:
        return key, value


def _fault_line(fault: dict[str, object]) -> str:
    """A fault's number, kind, target, and number of occurrences."""
    rest = [f"{key}={value}" for key, value in fault.items() if key not in {"id", "used", "kind"}]
    return " ".join([f"{fault['id']:>3}  {fault['kind']}", *rest, f"(struck {fault['used']} times)"])
