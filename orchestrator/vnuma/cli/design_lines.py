"""A study's design, as plans print it."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.planning import TYPICAL_SPREADS, Costs, Plans, allocate, wanted_width
from vnuma.analysis.records import design_of
from vnuma.domain.study.order import (
    assumed_boot_seconds,
    assumed_cell_seconds,
    assumed_iteration_seconds,
    assumed_seconds_without,
    columns,
    seconds_in_all,
)
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import host_key
from vnuma.engine.preflight.plan import TargetPlan
from vnuma.report.model.words import ORDER_WORDS
from vnuma.words.plain_text import counted, duration
from vnuma.words.validation import percent_text
from vnuma.workloads.interface import workload_named


def design_lines(study: Study) -> list[str]:
    """Order, controls besides the arms, end, and whether a verdict is possible."""
    design = study.design
    sentinel = workload_named(study.workload.name).sentinel(study.workload, study.dataset)
    controls = [
        name
        for name, wanted in (
            ("A/A", design.a_a),
            ("sentinel", design.sentinel and sentinel),
            (f"positive control {study.control_arm}", study.control_arm),
        )
        if wanted
    ]
    blocks = f"{at_most(study)}{counted(design.most_blocks, 'block')}"
    lines = [f"Design   {blocks} {ORDER_WORDS[design.order]} (seed {design.seed})"]
    lines[0] += f"; {', '.join(controls)}" if controls else "; no A/A, no sentinel, no positive control"
    if design.covariate == "place":
        lines.append("Place    in the block, as a linear covariate (declared in the study)")
    if design.precision:
        lines.append(
            f"Ends     after the block in which every 95% half-width is at most "
            f"{percent_text(design.precision)}"
        )
    if design.stop == "decided":
        lines.append("Ends     when every arm has left: each does after the block that decides its verdict")
    if design.max_hours:
        lines.append(
            f"Ends     before the first block that would probably exceed {design.max_hours:g} h of work"
        )
    if design.most_blocks < MIN_BOOTS_FOR_VERDICT:
        each = counted(design.most_blocks, study.replicate)
        lines.append(f"Verdict  none: {each} per arm; {MIN_BOOTS_FOR_VERDICT} are needed")
    return lines


def assumed_plans(study: Study) -> Plans:
    """Boots or iterations, from the assumed duration and spread of a cell's parts."""
    design = design_of(study)
    costs = Costs(assumed_boot_seconds(study), assumed_iteration_seconds(study), study.design.warmups)
    return allocate(design, wanted_width(design, study.design.precision), TYPICAL_SPREADS, costs)


def largest_size(study: Study) -> list[str]:
    """What the largest size costs: the same boots without it. Empty where there is one size."""
    workload = study.workload
    if len(workload.sizes) < 2:
        return []
    largest, boots = max(workload.sizes), len(columns(study)) * study.design.most_blocks
    whole, less = assumed_cell_seconds(study), assumed_seconds_without(study, largest)
    return [
        f"Sizes    Without {workload.size_label(largest)} the same boots take {duration(less * boots)} "
        f"instead of {duration(whole * boots)} (assumed)."
    ]


def at_most(study: Study) -> str:
    """The words before a number that a stopping rule may not reach."""
    return "at most " if study.design.may_end_early else ""


def in_all(study: Study, plans: Sequence[TargetPlan]) -> float:
    """The study's duration on all its VMs, in seconds."""
    take_turns = study.design.neighbours == "take_turns"
    known = ((host_key(plan.key, plan.host_name), plan.seconds) for plan in plans)
    return seconds_in_all(known, take_turns=take_turns)
