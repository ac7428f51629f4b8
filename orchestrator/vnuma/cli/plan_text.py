"""The plan of a study: the text about one target, and the whole as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from textwrap import indent

from vnuma.analysis import planning
from vnuma.analysis.planning import Leaving
from vnuma.analysis.records import design_of
from vnuma.analysis.wording import percent_up, plans_sentence
from vnuma.cli.design_lines import assumed_plans, at_most, design_lines, in_all, largest_size
from vnuma.cli.screen import aligned, clock_time, sign, width
from vnuma.domain.study.order import assumed_cell_seconds
from vnuma.domain.study.study import Study
from vnuma.domain.vm.linux import LinuxFacts
from vnuma.domain.workloads.settings import INSTANCE_CHANGES
from vnuma.engine.preflight.findings import Finding, blocking
from vnuma.engine.preflight.plan import (
    ShapePlan,
    TargetPlan,
    distinguished_by_workload,
    doubts,
    same_nodes,
    same_to_the_guest,
)
from vnuma.words.plain_text import counted, duration, plural
from vnuma.words.provenance import banner


def called(name: str, plan: TargetPlan) -> str:
    """Its name in the inventory, with vCenter's where that differs."""
    return f"{name} ({plan.name} in vCenter)" if plan.name != name else name


def plan_text(study: Study, name: str, plan: TargetPlan, start: str, checks: bool) -> str:
    """The plan of one target, called `name`. `start` is the command that measures it."""
    lines = [banner(plan.simulated)] if plan.simulated else []
    lines += [
        f"{study.name}  {_head(name, plan)}",
        "",
        *(_shape_lines(study, plan.shape, plan.boots) if plan.shape else ()),
        *(_guest_lines(study, plan, plan.linux) if plan.linux else ()),
        *(_programs(study) if study.workload.runs_programs and not plan.linux else ()),
        *([f"When: {study.allowed_hours.words}"] if study.allowed_hours else []),
        "Restored after the last cell, on Ctrl-C, and at the next start if this controller dies.",
        *(_database(study) if "database" in study.workload.needs else ()),
        "",
        *design_lines(study),
        f"Time     {at_most(study)}{counted(plan.boots, study.replicate)}, "
        f"{_takes(plan.seconds, plan)} (assumed; measured after block 1)",
        *(_detects(study) if study.shapes else ["         A cell is a pass: boots may vary more."]),
        *findings_lines(plan.findings, checks),
        "",
        "Nothing was changed." + ("" if blocking(plan.findings) else f" Start:\n  {start}"),
    ]
    return "\n".join(lines)


def _takes(seconds: float, plan: TargetPlan) -> str:
    """How long on hardware; the lab is much faster, by how much depends on the machine."""
    there = f"about {duration(seconds)} on real hardware"
    return f"some seconds a boot here, {there}" if plan.simulated else there


def _head(name: str, plan: TargetPlan) -> str:
    """What is measured, and on what."""
    shape = plan.shape
    if shape is None:
        return f"{name} as it is, on {plan.host_name}"
    clone = _clone(plan, " (test clone)", ", not marked as a test clone")
    release = f"ESXi {shape.host.release.version}, vmx-{shape.vm.hardware_version}"
    return f"{name}{clone} on {plan.host_name}, {release}"


def _clone(plan: TargetPlan, yes: str, no: str) -> str:
    """Whether the VM may be power-cycled many times; nothing of what is simulated or never booted."""
    if plan.simulated or plan.shape is None:
        return ""
    return yes if plan.shape.test_clone else no


def summary(study: Study, named: Mapping[str, TargetPlan]) -> str:
    """What a study will change, in a few lines, shown before it starts; plans by what VMs are called."""
    plans = list(named.values())
    lines = [banner(plans[0].simulated)] if plans and plans[0].simulated else []
    lines += [f"{study.name}  {', '.join(study.labels)} on {counted(len(plans), 'VM')}"]
    for name, plan in named.items():
        lines += [f"  {line}" for line in _changed(study, name, plan)]
    total = in_all(study, plans)
    ends = "" if plans and plans[0].simulated else f", to {clock_time(total)}"
    lines.append(f"Time     {_takes(total, plans[0])} (assumed){ends}")
    warned = sum(finding.severity == "warn" for plan in plans for finding in plan.findings)
    lines.append(f"Checks   {counted(warned, 'warning')}; in full: vnuma plan STUDY --checks")
    lines.append("Restored after the last cell, on Ctrl-C, and at the next start if this controller dies.")
    return "\n".join(lines)


def _changed(study: Study, name: str, plan: TargetPlan) -> list[str]:
    clone = _clone(plan, " (test clone)", ", NOT marked as a test clone")
    cycles = counted(plan.boots, CYCLES[study.replicate])
    changes = [*(plan.shape.touched if plan.shape else ()), *study.workload.kernel_settings()]
    return [
        f"{name}{clone} on {plan.host_name}: {cycles}",
        f"  changes {', '.join(changes) or 'nothing'}",
        *(line for step in study.workload.steps() for line in indent(step, "  ").splitlines()),
    ]


CYCLES = {"boot": "power-cycle", "pass": "pass"}
"""What is repeated, as somebody sees it who watches the target."""


def labelled(study: Study, label: str) -> str:
    """An arm's label, with the reference marked."""
    return f"{label} (reference)" if label == study.reference else label


def value_text(value: object, comma: str = ",", to: str = "..") -> str:
    """A setting's value; a long list of CPUs is shortened to its ends."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        if len(value) < 5:
            return comma.join(map(str, value))
        return f"{value[0]}{comma}{value[1]}{to}{value[-1]} ({len(value)} CPUs)"
    return str(value)


def _guest_lines(study: Study, plan: TargetPlan, guest: LinuxFacts) -> Iterator[str]:
    """The guest that the workload runs in, and what it does there."""
    yield f"Guest    {guest.hostname}, {guest.words}"
    for node in guest.nodes:
        free = f"{node.memory_mb:,} MB ({node.free_mb:,} MB free)"
        yield f"         node {node.id}: {counted(len(node.cpus), 'CPU')}, {free}"
    if plan.shape is None:
        measured = [labelled(study, label) for label in study.labels if label not in plan.left_out]
        yield f"Arms     {', '.join(measured)}"
    yield from (f"         {label} is left out: {why}" for label, why in plan.left_out.items())
    yield from _programs(study)


def _programs(study: Study) -> Iterator[str]:
    """What the workload does there, or on its client."""
    yield f"Runs     {study.workload.summary()}"
    yield from (indent(step, " " * 9) for step in study.workload.steps())


def _shape_lines(study: Study, plan: ShapePlan, boots: int) -> Iterator[str]:
    """What the hypervisor is told to change, and what the guest is predicted to see."""
    yield from _arms(study, plan)
    yield ""
    yield from _indistinguishable_arms(study, plan)
    yield from _touched(plan, boots)
    yield from _inside(study)
    cut = f"hard power-off after {duration(study.power.shutdown_timeout_s)}."
    allowed = study.power.on_shutdown_timeout == "power_off"
    yield f"How: guest shutdown by Tools; {cut if allowed else 'no hard power-off.'}"


def _database(study: Study) -> list[str]:
    end = " and dropped." if study.dataset.drop_after else "."
    return [f"Database: {study.dataset.database} only, created{end}"]


def _arms(study: Study, plan: ShapePlan) -> list[str]:
    label = max(len(arm.label) for arm in plan.arms) + 2
    has_sql = "sql_server" in study.workload.needs
    lines = [
        f"{'':{label}}   vNUMA nodes" + "               SQL nodes" * has_sql,
        f"{'Arm':{label}}   predicted  confidence" + "     memory  CPU" * has_sql,
    ]
    for arm in plan.arms:
        mark = "R" if arm.label == study.reference else " "
        if arm.prediction is None or arm.view is None:
            lines.append(f"{arm.label:{label}} {mark} impossible ({arm.rule}): {arm.impossible}")
            lines += [f"{'':{label}}   {arm.fix}"] if arm.fix else []
            continue
        seen = arm.prediction
        sure = seen.confidence + (f", else {seen.alternatives[0]}" if seen.alternatives else "")
        nodes = f"{seen.vnuma_nodes:>6} {arm.view.sql_cpu_nodes:>4}" if has_sql else ""
        lines.append(f"{arm.label:{label}} {mark} {seen.vnuma_nodes:>9}  {sure:<14} {nodes}".rstrip())
    twice = ", twice in each block (A/A)" if study.design.a_a else ""
    return [*lines, f"R: reference{twice}"]


def _indistinguishable_arms(study: Study, plan: ShapePlan) -> list[str]:
    """Arms that cannot be distinguished, or only by the workload, and why a prediction is uncertain."""
    lines = []
    for alike in same_to_the_guest(plan.arms):
        differs = f"the host's side differs: {', '.join(alike.differing)}"
        why = differs if alike.differing else "nothing differs on this VM"
        lines.append(f"Same to the guest: {', '.join(alike.arms)} ({why})")
    for alike in same_nodes(plan.arms):
        lines.append(
            f"Same vNUMA nodes: {', '.join(alike.arms)} (what differs: {', '.join(alike.differing)})"
        )
    for alike in distinguished_by_workload(plan.arms):
        differs = f"what differs: {', '.join(alike.differing)} of {study.workload.name}"
        lines.append(f"Same shape: {', '.join(alike.arms)} ({differs})")
    for because, arms in doubts(plan.arms).items():
        lines.append(f"Low confidence for {', '.join(arms)}: {because}")
    return [*lines, ""] if lines else []


def _touched(plan: ShapePlan, boots: int) -> list[str]:
    rows = [(plan.vm.name, "now", "during", "restored")]
    for name, (now, during) in plan.touched.items():
        values = ", ".join(value_text(value) for value in during)
        rows.append((f"  {name}", value_text(now), values, value_text(now)))
    power = "on" if plan.vm.power == "poweredOn" else "off"
    rows.append(("  power", power, counted(boots, "cycle"), power))
    return aligned(rows, width())


def _inside(study: Study) -> list[str]:
    """What changes inside the guest, besides the database."""
    lines = []
    if study.sets_soft_numa:
        lines.append(
            "SQL Server: each arm sets automatic soft-NUMA; the current setting is read at the start "
            "and restored."
        )
    if study.control_arm:
        lines.append(
            "SQL Server: the control's cells set process affinity; it is read at the start and "
            "restored after each."
        )
    return lines + [f"SQL Server: {INSTANCE_CHANGES[one]}" for one in sorted(study.workload.changes)]


def _detects(study: Study) -> list[str]:
    """What the design likely detects at an assumed spread; nothing if there will be no verdict."""
    design = design_of(study)
    if not design.compared:
        return []
    spread = planning.typical_spread(study.design.iterations, len(study.workload.sizes))
    if study.design.stop == "decided":
        return [_leaves(study, planning.leaving(design, spread)), *largest_size(study)]
    seen = planning.outlook(design, design.blocks, spread, design.equivalence)
    if seen is None:
        return []
    found = percent_up(seen.detectable)
    # Either rule may end a study long before its last block.
    may_end = study.design.may_end_early or study.design.max_hours
    run = f"all {design.blocks} blocks run and " if may_end else ""
    spread_as = f"{run}boots vary by {spread.label} (assumed; vnuma power STUDY)"
    return [
        f"Detects  {found} in 80% of studies, if {spread_as}",
        f"Costs    {plans_sentence(assumed_plans(study), study.replicate, study.design.iterations)}",
        *largest_size(study),
    ]


def _leaves(study: Study, seen: Leaving) -> str:
    """How many boots it likely takes until every arm has left, at an assumed spread."""
    each = assumed_cell_seconds(study)
    few, likely, many = (
        duration(boots * each) for boots in (seen.fewest_boots, seen.likely_boots, seen.most_boots)
    )
    each_is = plural(study.replicate)
    return (
        f"Likely   {seen.likely_boots:.0f} {each_is}, {likely} ({seen.fewest_boots:.0f} to "
        f"{seen.most_boots}, {few} to {many}), if {each_is} vary by {seen.spread.label} (assumed; vnuma "
        "power STUDY)"
    )


def findings_lines(findings: Sequence[Finding], checks: bool) -> list[str]:
    """The number of findings with the first words of each, and in full either the blocking ones or all."""
    count = {level: sum(f.severity == level for f in findings) for level in ("block", "warn", "info")}
    more = "" if checks else "; in full: vnuma plan STUDY --checks"
    lines = [f"Checks   {count['block']} block, {count['warn']} warn{more}" if findings else "Checks   none"]
    if not checks:
        heads = (f"{one.id}  {first_words(one)}" for one in findings if one.severity != "block")
        lines += [f"         {head}" for head in dict.fromkeys(heads)]
    for finding in findings:
        if checks or finding.severity == "block":
            lines.append(f"{sign(finding.severity) or '  '}{finding.severity:5} {finding.id}  {finding.what}")
            if finding.fix:
                lines.append(f"             fix: {finding.fix}")
    return lines


def first_words(finding: Finding) -> str:
    """What it is, without its observed values."""
    return finding.what.partition(": ")[0].partition(". ")[0]


def document_of(study: Study, plans: Sequence[TargetPlan]) -> dict[str, object]:
    """The plan of a study as a JSON object, `vnuma/plan/2`."""
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
