"""`vnuma restore`: put VMs back as they were before their run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import InventoryOption, StoreOption
from vnuma.cli.screen import say


def restore(
    vms: Annotated[
        list[str] | None, typer.Argument(metavar="VM", help="Inventory names; all by default.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only VMs of this run.")] = None,
    theirs: Annotated[
        bool, typer.Option("--theirs", help="Keep what somebody else changed; put back the rest.")
    ] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Put back everything, also what others changed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be put back.")] = False,
    inventory: InventoryOption = None,
    store: StoreOption = None,
) -> None:
    """Put every VM that is not at its baseline back, and prove it by reading back.

    When somebody else changed a VM no setting is touched: --theirs or --baseline decide (exit code 7).

    Examples: vnuma restore; vnuma restore sql16 --dry-run; vnuma restore sql16 --theirs
    """
    from vnuma.cli.crash import report_bug_within
    from vnuma.engine.restore.restoration import Choice
    from vnuma.engine.restore.restore_leftover import restore_leftovers, show_leftovers
    from vnuma.errors import InputError

    if theirs and baseline:
        raise InputError("--theirs and --baseline exclude each other.", fix="Choose one of them.")
    choice: Choice = "theirs" if theirs else "baseline" if baseline else "refuse"
    if dry_run:
        for line in show_leftovers(store, vms or [], run, _inventory(inventory), choice):
            say(line)
        return
    outcomes = restore_leftovers(
        store, vms or [], run, _inventory(inventory), choice, lambda text: say(text, sys.stderr)
    )
    if not outcomes.done and not outcomes.problems and not outcomes.in_use:
        say("Every VM is at its baseline.")
    for words in outcomes.done:
        say(f"Put back  {words}")
    for words in outcomes.kept:
        say(f"Kept      {words}")
    for words in outcomes.in_use:
        say(f"In use    {words}")
    if len(outcomes.problems) > 1:
        for problem in outcomes.problems:
            say(str(problem), sys.stderr)
            report_bug_within(problem)
    outcomes.raise_for_outcome()


def _inventory(given: Path | None) -> Path | None:
    """None means: the inventory that the run was started with."""
    return given
