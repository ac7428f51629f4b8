"""`vnuma contract`: what vnuma assumes of SQL Server and vSphere, checked against a real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vnuma.cli.options import (
    InventoryOption,
    PermitOptions,
    TextOrJsonOption,
    inventory_of,
    reached_by,
)
from vnuma.cli.screen import can_ask, echo, echo_json, note, require_yes, say, signed, write_out
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.errors import EnvironmentProblem, UsageError, require_packages
from vnuma.words.provenance import banner

if TYPE_CHECKING:
    from vnuma.contract.suite import Answers
    from vnuma.engine.preflight.findings import Permit


def contract(
    *,
    sql: Annotated[
        str | None, typer.Option(metavar="HOST", help="Ask this host's SQL Server (inventory name).")
    ] = None,
    vcenter: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Ask this host's vCenter, using its VM. A test clone is also changed, then restored.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="With --vcenter: ask only what needs no change.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --vcenter: change the VM without asking.")
    ] = False,
    allowed: PermitOptions,
    inventory: InventoryOption = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers as JSON, without names."),
    ] = None,
    format_: TextOrJsonOption = "text",
) -> None:
    """Check vnuma's assumptions against a real SQL Server or vCenter; or list them. Exit code 4 if one
    differs.

    --sql creates the database vnuma_contract there and drops it afterwards. No setting is changed.
    The VM must be a test clone, carry its owner's tag (--require-tag), or be named with --production
    --ticket.
    --vcenter power-cycles a test clone and changes it. It asks first; without a terminal it needs --yes.
    Other VMs, and with --read-only all, are only read.

    Examples: vnuma contract; vnuma contract --sql sql16 -i inventory --output contract.json;
    vnuma contract --vcenter clone16 -i inventory --output contract.json
    """
    require_packages("vnuma contract", "pytest")
    permit = allowed.permit()
    if allowed != PermitOptions() and not sql:
        raise UsageError(
            "--production, --ticket and --require-tag need --sql.", fix="vnuma contract --sql HOST"
        )
    if (sql and vcenter) or ((read_only or yes) and not vcenter) or (read_only and yes):
        raise UsageError(
            "Give either --sql or --vcenter. --read-only and --yes exclude each other and need --vcenter.",
            fix="vnuma contract --vcenter HOST --read-only",
        )
    if sql:
        tell(_ask_sql(sql, inventory, permit), output, format_)
    elif vcenter:
        tell(_ask_vcenter(vcenter, inventory, read_only=read_only, yes=yes), output, format_)
    elif output:
        raise UsageError(
            "--output needs --sql: it writes what a server answered.",
            fix="vnuma contract --sql HOST --output FILE",
        )
    else:
        from vnuma.contract.suite import document, markdown

        as_json = format_ == "json"
        echo(json.dumps(document(), indent=2) if as_json else markdown().rstrip("\n"))


def _ask_sql(name: str, inventory: Path | None, permit: Permit) -> Answers:
    from vnuma.contract.sql import ask_sql
    from vnuma.engine.access.connections import sql_server

    target = inventory_of(inventory, [name]).targets([name])[name]
    permit.require_of(target)
    return ask_sql(sql_server(target))


def _ask_vcenter(name: str, inventory: Path | None, *, read_only: bool, yes: bool) -> Answers:
    from vnuma.contract.vcenter import ask_vcenter

    where = inventory_of(inventory, [name])
    target = where.targets([name])[name]

    def consent(vm: VmFacts, simulated: str | None) -> None:
        if not yes:
            _ask(vm, simulated, reached_by(where, {name: target}))

    return ask_vcenter(
        target, where, consent=consent, read_only=read_only, say=lambda text: say(text, sys.stderr)
    )


def _ask(vm: VmFacts, simulated: str | None, reached: str) -> None:
    """Show what will be done to the VM and continue only after a yes. Raises typer.Abort, or UsageError if
    nobody can answer.
    """
    if not can_ask():
        raise UsageError(
            f"{vm.name} would be power-cycled and changed. That needs your confirmation, and this is "
            "not a terminal. Nothing was changed.",
            fix="--yes changes it without asking; --read-only changes nothing.",
        )
    shut_down = "shuts the guest down, " if vm.power is Power.ON else ""
    if simulated:
        say(banner(simulated), sys.stderr)
    say(f"VM       {vm.name} ({vm.path}), {vm.power.value}", sys.stderr)
    say(f"Will     {shut_down}changes the VM while it is off, powers it on, changes it again", sys.stderr)
    say("Then     restores every setting and the power state, at the end and after Ctrl-C;", sys.stderr)
    say("         after a kill, run `vnuma restore`", sys.stderr)
    say(f"Uses     {reached}", sys.stderr)
    require_yes("Start?")


def tell(answers: Answers, output: Path | None, format_: Literal["text", "json"] = "text") -> None:
    """A line for each assumption, the file, and the count of each result. Raises the error that ended the
    checks early, and when an assumption differs.
    """
    from vnuma.contract.suite import Verdict

    in_words = format_ == "text"
    if not in_words:
        echo_json(answers.document())
    elif answers.simulated:
        say(banner(answers.simulated))
    for one in answers.beliefs if in_words else ():
        say(signed(f"{one.verdict:13} {one.id}{one.seen and f': {one.seen}'}"))
    if output:
        write_out(json.dumps(answers.document(), indent=2) + "\n", output, "The answers", "--output")
        (say if in_words else note)(f"Wrote {output}: names, addresses and accounts are left out.")
    differing = answers.count(Verdict.DIFFERS)
    closing = (
        f"{answers.count(Verdict.HELD)} held, {differing} differ, "
        f"{answers.count(Verdict.NOT_EVALUABLE)} could not be evaluated. {answers.leftover}".rstrip()
    )
    if answers.cut_short:
        (say if in_words else note)(closing)
        raise answers.cut_short
    if differing:
        fix = f"Send {output} in." if output else "Report it, with the file from --output contract.json"
        raise EnvironmentProblem(closing, fix=fix)
    if in_words:
        say(closing)
