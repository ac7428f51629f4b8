"""`vnuma restore`: restore VMs to their state before their run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.crash import report_bug_within
from vnuma.cli.options import (
    InventoryOption,
    SiteOption,
    StoreOption,
    VmsArgument,
    find_inventory,
    opened_store,
    run_names,
)
from vnuma.cli.screen import say
from vnuma.errors import UsageError
from vnuma.file_lock import require_unix

if TYPE_CHECKING:
    from vnuma.engine.restore.restore_leftovers import RestoreReport
    from vnuma.engine.restore.restore_vm import Choice
    from vnuma.store.open import Store


def restore(
    vms: VmsArgument = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Only VMs of this run.", autocompletion=run_names),
    ] = None,
    theirs: Annotated[
        bool, typer.Option("--theirs", help="Keep somebody else's changes; restore the rest.")
    ] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Restore everything, including what others changed.")
    ] = False,
    from_audit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Without a store: undo the changes in this audit log."),
    ] = None,
    vm_only: Annotated[
        bool,
        typer.Option("--vm-only", help="Leave what the study's programs made: their machine is gone."),
    ] = False,
    site: SiteOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be restored.")] = False,
    inventory: InventoryOption = None,
    store: StoreOption = None,
) -> None:
    """Restore every VM that is not at its baseline, and prove it by reading its settings back.

    If somebody else changed a VM, no setting is touched until you choose --theirs or --baseline (exit code
    7). A VM that a living run uses is left alone (exit code 8). If a run's store is lost, the audit log next
    to it contains what to undo (--from-audit).

    Examples: vnuma restore; vnuma restore sql16 --dry-run; vnuma restore sql16 --theirs;
    vnuma restore --from-audit ~/.local/state/vnuma/vnuma.audit.jsonl -i inventory
    """
    from vnuma.engine.access.places import audit_file, store_url
    from vnuma.engine.restore.restore_leftovers import RestoreRequest, restore_leftovers, show_leftovers
    from vnuma.store.place import parse_place

    require_unix()
    if vm_only and (from_audit or not vms):
        raise UsageError("--vm-only needs the names of VMs, and the store.", fix="vnuma restore VM --vm-only")
    if theirs and baseline:
        raise UsageError("--theirs and --baseline exclude each other.", fix="Choose one of them.")
    choice: Choice = "theirs" if theirs else "baseline" if baseline else "refuse"
    where = find_inventory(inventory) if inventory or from_audit else None
    told = sys.stdout if dry_run else sys.stderr
    wanted = RestoreRequest(
        vms or [], run, where, choice, lambda text: say(text, told), site, from_audit, vm_only
    )
    # A lost store is created again: the audit log next to it, or marks on VMs, name what to restore.
    lost = bool(from_audit or inventory or audit_file(parse_place(store_url(store))).exists())
    opened = opened_store(store, create=lost)
    if dry_run:
        for line in show_leftovers(opened, wanted) or [_nothing(opened, from_audit)]:
            say(line)
        return
    report = restore_leftovers(opened, wanted)
    if not report.done and not report.problems:
        say(_nothing(opened, from_audit))
    _tell(report)


def _nothing(store: Store, log: Path | None) -> str:
    """That nothing needs restoring. A store without runs knows no VM's baseline."""
    from vnuma.store.runs import list_runs

    if log:
        return "The audit log contains nothing to undo."
    with store.read() as connection:
        if list_runs(connection):
            return "Every VM is at its baseline."
    return f"Nothing to restore: the store {store.place} has no runs, so it knows no VM's baseline."


def _tell(report: RestoreReport) -> None:
    """Each VM's line, then the errors. Raises the one that decides the exit code."""
    for words in report.done:
        say(f"Restored  {words}")
    for words in report.kept:
        say(f"Kept      {words}")
    for problem in report.ranked[1:]:
        say(str(problem), sys.stderr)
        report_bug_within(problem)
    if report.ranked:
        raise report.ranked[0]
