"""`vnuma run`: measure a study and restore the VMs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vnuma.assets import typed
from vnuma.cli.events import following
from vnuma.cli.options import InventoryOption, PermitOptions, SiteOption, StoreOption, run_names, study_files
from vnuma.cli.plan import plan
from vnuma.errors import UsageError
from vnuma.file_lock import require_unix


def run(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="A study file.", autocompletion=study_files)
    ] = None,
    *,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Continue this run.", autocompletion=run_names),
    ] = None,
    site: SiteOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and plan only; the same as vnuma plan.")
    ] = False,
    create_only: Annotated[
        bool,
        typer.Option(
            "--create-only",
            help="Check, store the run and print its name; then start it by a playbook or AWX. With "
            "--resume: make a stored run ready for that.",
        ),
    ] = False,
    events: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write events as JSON lines; - is standard output."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without asking.")] = False,
    allowed: PermitOptions,
    inventory: InventoryOption = None,
    store: StoreOption = None,
) -> None:
    """Run a study: shape, boot, verify and measure every cell, then restore the VMs.

    On a terminal it shows what will change and asks first; elsewhere it starts at once. Before that, without
    asking, it restores VMs that a dead controller left changed. Ctrl-C stops after the current iteration and
    restores the VMs; a second Ctrl-C stops at once, and still restores them, unless vCenter is away. A
    third leaves the VMs as they are (exit code 7).

    With --resume and --site it works on the VMs of that site alone; a process without --site waits for it.

    Examples: vnuma run studies/quick.yml; vnuma run --resume quick.4;
    vnuma run STUDY --production --ticket CHG0031234; vnuma run --resume quick.4 --site site-b -i inventory
    """
    require_unix()
    if (study is None) == (resume is None):
        raise UsageError(
            "Give either a study file or --resume RUN.", fix=f"vnuma run {typed('studies/quick.yml')}"
        )
    if site and (create_only or not resume):
        raise UsageError("--site continues a stored run.", fix=f"vnuma run --resume RUN --site {site}")
    if create_only and dry_run:
        raise UsageError(
            "--create-only stores a run, --dry-run does not: give one of them.",
            fix=f"vnuma run {typed('studies/quick.yml')} --create-only",
        )
    from vnuma.cli import run_study

    permit = allowed.permit()
    if resume:
        if allowed != PermitOptions():
            raise UsageError(
                "A resumed run keeps its permit: --production, --ticket and --require-tag need a study file.",
                fix=f"vnuma run --resume {resume}",
            )
        with following(events) as follow:
            if site:
                run_study.work_at(site, resume, inventory, store, follow)
            else:
                run_study.resume(resume, inventory, store, follow, create_only=create_only)
        return

    path = Path(str(study))
    if dry_run:
        plan(path, inventory=inventory, allowed=allowed)
        return
    with following(events) as follow:
        asks = not (yes or create_only)
        run_study.start(path, inventory, store, permit, follow, create_only=create_only, ask=asks)
