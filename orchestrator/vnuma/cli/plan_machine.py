"""What `vnuma plan` prints of a machine that is measured as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vnuma.cli.design_lines import at_most, design_lines
from vnuma.cli.findings_lines import closing_line, findings_lines
from vnuma.cli.screen import duration, plural, simulated_banner
from vnuma.domain.workloads.replicate import counted

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.machine_plan import MachinePlan


def machine_text(study: Study, plan: MachinePlan, start: str, checks: bool) -> str:
    """The plan of one machine. `start` is the command that measures it."""
    lines = [simulated_banner(plan.simulated)] if plan.simulated else []
    lines += [f"{study.name}  {plan.name}: {plan.machine.hostname}, {plan.machine.words}", ""]
    lines += [
        f"  node {node.id}: {plural(len(node.cpus), 'CPU')}, {node.memory_mb:,} MB ({node.free_mb:,} MB free)"
        for node in plan.machine.nodes
    ]
    lines += ["", f"Arms     {', '.join(_labels(study, plan))}"]
    lines += [f"         {label} is left out: {why}" for label, why in plan.left_out.items()]
    lines += [
        f"Runs     {study.workload.summary()}",
        "Changes  drops the page cache before each pass; files in workload.folder, removed after the run.",
        *design_lines(study),
        f"Time     {at_most(study)}{counted(plan.boots, study.workload.replicate)}, "
        f"about {duration(plan.seconds)} (assumed)",
        "         A cell is a pass with caches dropped before it, not a boot: boots may differ more.",
        *findings_lines(plan.findings, checks),
        "",
        closing_line(plan.findings, start),
    ]
    return "\n".join(lines)


def _labels(study: Study, plan: MachinePlan) -> list[str]:
    return [f"{label} (reference)" if label == study.reference else label for label in plan.measured]


def machines_document(plans: Sequence[MachinePlan]) -> dict[str, object]:
    """The machines of a plan as JSON; empty for a study of VMs."""
    from dataclasses import asdict

    if not plans:
        return {}
    return {
        "simulated": any(plan.simulated for plan in plans),
        "machines": [
            {
                "machine": plan.name,
                "facts": asdict(plan.machine),
                "arms": list(plan.measured),
                "left_out": dict(plan.left_out),
                "passes": plan.boots,
                "assumed_seconds": plan.seconds,
                "findings": [asdict(finding) for finding in plan.findings],
            }
            for plan in plans
        ],
    }
