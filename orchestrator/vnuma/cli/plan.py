"""`vnuma plan`: what a study would do, before anything is touched."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
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
    from vnuma.engine.preflight.plan import ShapePlan, TargetPlan


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
    from vnuma.cli.plan_text import called, plan_text
    from vnuma.engine.access.inventory import of_site, study_targets
    from vnuma.engine.notify import channels_of
    from vnuma.engine.preflight.findings import refuse_blocked, refuse_shown
    from vnuma.engine.preflight.plan import plan_all

    permit = allowed.permit()
    parsed, text = read_study(study)
    where = inventory_of(inventory, parsed.vms)
    targets = study_targets(where, parsed)
    channels = channels_of(where, targets)
    planned = plan_all(parsed, of_site(targets, site), permit, where)
    plans = list(planned.values())
    if format_ == "json":
        echo_json(_document(parsed, plans))
    else:
        start = _command("run", study, inventory, permit)
        for name, one in planned.items():
            say(plan_text(parsed, called(name, one), one, start, checks))
        if len(plans) > 1:
            say(f"In all   {duration(in_all(parsed, plans))} for {len(plans)} VMs: {_order(parsed)}")
        for name, target in targets.items():
            if target.node and target.node != site:
                say(f"Not seen {name}: at {target.node}, vnuma plan {study} --site {target.node}")
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


def _document(study: Study, plans: Sequence[TargetPlan]) -> dict[str, object]:
    from vnuma.cli.design_lines import assumed_plans, in_all

    return {
        "schema": "vnuma/plan/2",
        "simulated": any(plan.simulated for plan in plans),
        "study": study.name,
        "allocation": asdict(assumed_plans(study)),
        "vms": [_target(study, plan) for plan in plans],
        "assumed_seconds": in_all(study, plans),
    }


def _target(study: Study, plan: TargetPlan) -> dict[str, object]:
    """Everything about one target: what all have, then what its hypervisor and its guest add."""
    return {
        "vm": plan.name,
        "path": plan.path,
        "host": plan.host_name,
        "boots": plan.boots,
        "replicate": study.replicate,
        "assumed_seconds": plan.seconds,
        "measured": [label for label in study.labels if label not in plan.left_out],
        "left_out": dict(plan.left_out),
        "findings": [asdict(finding) for finding in plan.findings],
        **(_shape(plan.shape) if plan.shape else {}),
        **({"guest": asdict(plan.linux)} if plan.linux else {}),
    }


def _shape(plan: ShapePlan) -> dict[str, object]:
    from vnuma.engine.preflight.plan import distinguished_by_workload, same_nodes, same_to_the_guest

    return {
        "esxi": plan.host.release.version,
        "arms": [
            {
                "arm": arm.label,
                "impossible": arm.impossible,
                "rule": arm.rule or None,
                "prediction": asdict(arm.prediction) if arm.prediction else None,
                "guest": asdict(arm.view) | {"factors": dict(arm.view.factors)} if arm.view else None,
                "changes": [asdict(edit) for edit in arm.change or ()],
            }
            for arm in plan.arms
        ],
        "same_to_the_guest": [asdict(alike) for alike in same_to_the_guest(plan.arms)],
        "same_vnuma_nodes": [asdict(alike) for alike in same_nodes(plan.arms)],
        "told_apart_by_workload": [asdict(alike) for alike in distinguished_by_workload(plan.arms)],
    }
