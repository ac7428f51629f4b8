"""`vnuma plan`: what a study would do, before anything is touched."""

from __future__ import annotations

import json
import shlex
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vnuma.cli.design_lines import assumed_plans, at_most, design_lines, in_all
from vnuma.cli.findings_lines import closing_line, findings_lines
from vnuma.cli.options import (
    InventoryOption,
    ProductionOption,
    RequireTagOption,
    StudyArgument,
    TicketOption,
    read_study,
    study_inventory,
)
from vnuma.cli.plan_machine import machine_text, machines_document
from vnuma.cli.screen import aligned, duration, echo, plural, say, simulated_banner, width

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.plan import VmPlan


class PlanFormat(StrEnum):
    """What to print."""

    TEXT = "text"
    JSON = "json"


def plan(
    study: StudyArgument,
    inventory: InventoryOption = None,
    checks: Annotated[bool, typer.Option("--checks", help="Show every finding in full.")] = False,
    format_: Annotated[PlanFormat, typer.Option("--format", help="text or json.")] = PlanFormat.TEXT,
    production: ProductionOption = False,
    ticket: TicketOption = None,
    require_tag: RequireTagOption = None,
    document: Annotated[
        Path | None,
        typer.Option("--document", metavar="FILE", help="Write the plan as a page for a change board too."),
    ] = None,
) -> None:
    """Show what a study would change, what the guest should see, and how long it takes.

    Nothing is changed. Exit code 5 when something blocks the study.

    Examples: vnuma plan studies/quick.yml; vnuma plan STUDY --checks; vnuma plan STUDY --format json;
    vnuma plan STUDY --document plan.html --ticket CHG0031234
    """
    from vnuma.engine.access.inventory import study_targets
    from vnuma.engine.preflight.findings import refuse_blocked, refuse_shown
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.plan import VmPlan, plan_all

    permit = Permit.given(production, ticket, require_tag)
    parsed, text = read_study(study)
    where = study_inventory(inventory, parsed)
    every = list(plan_all(parsed, study_targets(where, parsed), permit, where).values())
    plans = [one for one in every if isinstance(one, VmPlan)]
    machines = [one for one in every if isinstance(one, MachinePlan)]
    if format_ is PlanFormat.JSON:
        echo(
            json.dumps(
                _document(parsed, plans)
                | machines_document(machines)
                | {"assumed_seconds": in_all(parsed, every)},
                indent=2,
            )
        )
    else:
        start = _command("run", study, inventory, permit)
        for machine in machines:
            say(machine_text(parsed, machine, start, checks))
        for one in plans:
            say(_text(parsed, one, start, checks))
        if len(every) > 1:
            say(f"In all   {duration(in_all(parsed, every))} for {len(every)} VMs: {_order(parsed)}")
    if document:
        from vnuma.cli.plan_document import write_document

        echo(f"Wrote {write_document(parsed, text, every, permit, document)}", err=True)
    findings = [finding for one in every for finding in one.findings]
    if format_ is PlanFormat.JSON:
        refuse_blocked(findings)
    else:
        refuse_shown(findings, _command("plan", study, inventory, permit))


def _order(study: Study) -> str:
    if study.design.neighbours == "take_turns":
        return "VMs of one host take turns, hosts work side by side."
    return "all are measured at the same time."


def _command(verb: str, study: Path, inventory: Path | None, permit: Permit) -> str:
    """The command for what was planned: for the same VMs, under the same permit."""
    where = ["-i", str(inventory)] if inventory else []
    under = [
        *(["--production"] if permit.production else []),
        *(["--ticket", permit.ticket] if permit.ticket else []),
        *(["--require-tag", permit.tag] if permit.tag else []),
    ]
    return shlex.join(["vnuma", verb, str(study), *where, *under])


def _text(study: Study, plan: VmPlan, start: str, checks: bool) -> str:
    kind = (
        "" if plan.simulated else ", not marked as a test clone" if not plan.test_clone else " (test clone)"
    )
    lines = [simulated_banner(plan.simulated)] if plan.simulated else []
    lines += [
        f"{study.name}  {plan.vm.name}{kind} on {plan.host.name}, ESXi {plan.host.release.version}, "
        f"vmx-{plan.vm.hardware_version}",
        "",
        *_arms(study, plan),
        "",
        *_alike(study, plan),
        *_touched(plan),
        *_inside(study),
        "How: guest shutdown by Tools; " + _hard_off(study),
        *([f"When: {study.allowed_hours.words}"] if study.allowed_hours else []),
        "Put back after the last cell, on Ctrl-C, and at the next start if this controller dies.",
        f"Database: {study.dataset.database} only, created"
        + (" and dropped." if study.dataset.drop_after else "."),
        "",
        *design_lines(study),
        f"Time     {at_most(study)}{plural(plan.boots, 'boot')}, about {duration(plan.seconds)} "
        "on real hardware (assumed; measured after block 1)",
        *_detects(study),
        *findings_lines(plan.findings, checks),
        "",
        closing_line(plan.findings, start),
    ]
    return "\n".join(lines)


def _arms(study: Study, plan: VmPlan) -> list[str]:
    label = max(len(arm.label) for arm in plan.arms) + 2
    lines = [
        f"{'':{label}}   vNUMA nodes               SQL nodes",
        f"{'Arm':{label}}   predicted  confidence     memory  CPU",
    ]
    for arm in plan.arms:
        mark = "R" if arm.label == study.reference else " "
        if arm.prediction is None or arm.view is None:
            lines.append(f"{arm.label:{label}} {mark} impossible ({arm.rule}): {arm.impossible}")
            lines += [f"{'':{label}}   {arm.fix}"] if arm.fix else []
            continue
        seen = arm.prediction
        sure = seen.confidence + (f", else {seen.alternatives[0]}" if seen.alternatives else "")
        nodes = f"{seen.vnuma_nodes:>6} {arm.view.sql_cpu_nodes:>4}"
        lines.append(f"{arm.label:{label}} {mark} {seen.vnuma_nodes:>9}  {sure:<14} {nodes}")
    twice = ", twice in each block (A/A)" if study.design.a_a else ""
    return [*lines, f"R: reference{twice}"]


def _alike(study: Study, plan: VmPlan) -> list[str]:
    """Arms that nobody could tell apart, or the workload alone, and why a prediction is not sure."""
    from vnuma.engine.preflight.arm_plan import (
        distinguished_by_workload,
        doubts,
        same_nodes,
        same_to_the_guest,
    )

    lines = []
    for alike in same_to_the_guest(plan.arms):
        differs = f"only the host's side differs: {', '.join(alike.differing)}"
        why = differs if alike.differing else "nothing differs on this VM"
        lines.append(f"The guest cannot tell apart: {', '.join(alike.arms)} ({why})")
    for alike in same_nodes(plan.arms):
        differs = f"the same vNUMA nodes; {', '.join(alike.differing)} differ"
        lines.append(f"Not distinguishable by NUMA: {', '.join(alike.arms)} ({differs})")
    for alike in distinguished_by_workload(plan.arms):
        differs = f"VMs of one shape; what differs is {', '.join(alike.differing)} of {study.workload.name}"
        lines.append(f"Told apart inside the guest: {', '.join(alike.arms)} ({differs})")
    for because, arms in doubts(plan.arms).items():
        lines.append(f"Low confidence for {', '.join(arms)}: {because}")
    return [*lines, ""] if lines else []


def _touched(plan: VmPlan) -> list[str]:
    rows = [(plan.vm.name, "now", "during", "put back")]
    for name, (now, during) in plan.touched.items():
        values = ", ".join(_value(value) for value in during)
        rows.append((f"  {name}", _value(now), values, _value(now)))
    power = "on" if plan.vm.power == "poweredOn" else "off"
    rows.append(("  power", power, plural(plan.boots, "cycle"), power))
    return aligned(rows, width())


def _inside(study: Study) -> list[str]:
    """What changes inside the guest, besides the database."""
    from vnuma.domain.workloads.settings import INSTANCE_CHANGES

    lines = []
    if study.sets_soft_numa:
        lines.append(
            "SQL Server: automatic soft-NUMA by arm; its own setting is read at the start and put back."
        )
    if study.control_arm:
        lines.append(
            "SQL Server: process affinity in the control's cells; read at the start, put back after each."
        )
    return lines + [f"SQL Server: {INSTANCE_CHANGES[one]}" for one in sorted(study.workload.changes)]


def _value(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return (
            ",".join(map(str, value))
            if len(value) < 5
            else f"{value[0]},{value[1]}..{value[-1]} ({len(value)} CPUs)"
        )
    return str(value)


def _detects(study: Study) -> list[str]:
    """What the design likely finds at an assumed spread; nothing where no word will be given."""
    from vnuma import analysis
    from vnuma.analysis import planning
    from vnuma.analysis.wording import percent_up

    design = analysis.design_of(study)
    if not design.compared:
        return []
    spread = planning.typical_spread(study.design.iterations, len(study.workload.sizes))
    seen = planning.outlook(design, design.blocks, spread, design.equivalence)
    if seen is None:
        return []
    found = percent_up(seen.detectable)
    return [
        f"Detects  {found} likely (80%), if boots vary by {spread.label} (assumed; vnuma power STUDY)",
        *_cheapest(study),
    ]


def _cheapest(study: Study) -> list[str]:
    """Boots or iterations, at the same assumed spread; the study's own iterations beside the cheapest."""
    from vnuma.analysis.wording import plans_sentence

    said = plans_sentence(assumed_plans(study), study.workload.replicate, study.design.iterations)
    return textwrap.wrap(f"Costs    {said}", (width() or 80) - 1, subsequent_indent=" " * 9)


def _hard_off(study: Study) -> str:
    if study.power.on_shutdown_timeout == "power_off":
        return f"hard power-off after {duration(study.power.shutdown_timeout_s)}."
    return "no hard power-off."


def _document(study: Study, plans: list[VmPlan]) -> dict[str, object]:
    from dataclasses import asdict

    from vnuma.engine.preflight.arm_plan import distinguished_by_workload, same_nodes, same_to_the_guest

    return {
        "schema": "vnuma/plan/1",
        "simulated": any(plan.simulated for plan in plans),
        "study": study.name,
        "allocation": asdict(assumed_plans(study)),
        "vms": [
            {
                "vm": plan.vm.name,
                "path": plan.vm.path,
                "host": plan.host.name,
                "esxi": plan.host.release.version,
                "boots": plan.boots,
                "assumed_seconds": plan.seconds,
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
                "findings": [asdict(finding) for finding in plan.findings],
            }
            for plan in plans
        ],
    }
