"""`vnuma plan`: what a study would do, before anything is touched."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.options import (
    InventoryOption,
    PermitOptions,
    SiteOption,
    StudyArgument,
    TextOrJsonOption,
    inventory_of,
    reached_by,
    read_study,
)
from vnuma.cli.screen import echo, echo_json, say
from vnuma.words.plain_text import duration

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.findings import Permit


def plan(
    study: StudyArgument,
    *,
    inventory: InventoryOption = None,
    checks: Annotated[bool, typer.Option("--checks", help="Show every finding in full.")] = False,
    format_: TextOrJsonOption = "text",
    allowed: PermitOptions,
    site: SiteOption = None,
    document: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the plan as a page for a change board."),
    ] = None,
) -> None:
    """Show what a study would change, what the guest should see, and how long it takes.

    Nothing is changed. Exit code 5 when something blocks the study.

    Examples: vnuma plan studies/quick.yml; vnuma plan STUDY --checks; vnuma plan STUDY --format json;
    vnuma plan STUDY --document plan.html --ticket CHG0031234
    """
    from vnuma.cli.design_lines import in_all
    from vnuma.cli.plan_text import called, document_of, plan_text
    from vnuma.engine.access.inventory import of_site
    from vnuma.engine.notify import channels_of
    from vnuma.engine.preflight.findings import refuse_blocked, refuse_shown
    from vnuma.engine.preflight.plan import plan_all

    permit = allowed.permit()
    parsed, text = read_study(study)
    where = inventory_of(inventory, parsed.vms)
    targets = where.study_targets(parsed)
    channels = channels_of(where, targets)
    planned = plan_all(parsed, of_site(targets, site), permit, where)
    plans = list(planned.values())
    if format_ == "json":
        echo_json(document_of(parsed, plans))
    else:
        start = _command("run", study, inventory, permit)
        for name, one in planned.items():
            say(plan_text(parsed, called(name, one), one, start, checks))
        if len(plans) > 1:
            say(f"In all   {duration(in_all(parsed, plans))} for {len(plans)} VMs: {_order(parsed)}")
        for name, target in targets.items():
            if target.site and target.site != site:
                say(f"Not seen {name}: at {target.site}, vnuma plan {study} --site {target.site}")
        say(f"Reads    {reached_by(where, targets)}")
        for line in dict.fromkeys(
            f"Notifies {channel.name}: {', '.join(channel.events)}" for channel in channels
        ):
            say(line)
    if document:
        from vnuma.cli.plan_document import page_text
        from vnuma.report.page.page import write_file

        page = page_text(parsed, text, plans, permit)
        write_file(document, page, "The document", fix="Name another file.")
        echo(f"Wrote {document}", err=True)
    findings = [finding for one in plans for finding in one.findings]
    if format_ == "json":
        refuse_blocked(findings)
    else:
        refuse_shown(findings, _command("plan", study, inventory, permit))


def _order(study: Study) -> str:
    if study.design.neighbours == "take_turns":
        return "VMs on the same host take turns; different hosts work in parallel."
    return "all are measured at the same time."


def _command(verb: str, study: Path, inventory: Path | None, permit: Permit) -> str:
    """The command that runs this plan: for the same VMs, under the same permit."""
    where = ["-i", str(inventory)] if inventory else []
    under = [
        *(["--production"] if permit.production else []),
        *(["--ticket", permit.ticket] if permit.ticket else []),
        *(["--require-tag", permit.tag] if permit.tag else []),
    ]
    return shlex.join(["vnuma", verb, str(study), *where, *under])
