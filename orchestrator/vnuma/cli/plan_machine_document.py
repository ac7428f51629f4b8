"""`vnuma plan --document` of a study of machines: what a change board wants to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

from vnuma import __version__
from vnuma.cli.screen import duration, simulated_banner
from vnuma.domain.study.order import plan_cells
from vnuma.report.page.change_page import MACHINES, ArmLine, ChangePage, Risk, SettingLine, VmChange

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.permit import Permit


_PLACES = {"interleave": "over all nodes in turn", "depleted": "where there is room: the node is used up"}


def machines_page(study: Study, text: str, plans: Sequence[MachinePlan], permit: Permit) -> ChangePage:
    """The page of a study that was planned on these machines."""
    from vnuma.engine.lease.context import holder

    simulated = next((plan.simulated for plan in plans if plan.simulated), None)
    hours = study.allowed_hours
    blocks = sorted({f.id for plan in plans for f in plan.findings if f.severity == "block"})
    facts = (
        ("Change ticket", permit.ticket or "none"),
        ("Requested by", holder()),
        ("Machines", ", ".join(plan.name for plan in plans)),
        ("When", hours.words if hours else "at any time: the study states no allowed hours"),
        ("Duration", f"about {duration(max(plan.seconds for plan in plans))} (assumed until measured)"),
        ("Passes", str(sum(plan.boots for plan in plans))),
        ("Blocked by", ", ".join(blocks) or "nothing"),
    )
    return ChangePage(
        study=study.name,
        title=study.title,
        banner=simulated_banner(simulated),
        facts=facts,
        steps=tuple(_steps(study)),
        back=tuple(_back()),
        vms=[_machine(study, plan, index) for index, plan in enumerate(plans)],
        study_text=text,
        study_sha256=sha256(text.encode()).hexdigest(),
        version=__version__,
        words=MACHINES,
    )


def _steps(study: Study) -> Iterator[str]:
    work, design = study.workload, study.design
    yield "Files of random bytes are made in the study's folder, once."
    if work.kernel_settings():
        yield "The kernel settings above are set, and read back."
    yield "The whole machine's page cache is dropped: other programs read from disk again for a while."
    yield "The file is read into memory from one node; each node's FilePages prove where it lies."
    yield f"It runs {work.summary()}, {design.warmups} to warm up and {design.iterations} timed for each."
    if work.kernel_settings():
        yield "The kernel settings are put back, and read back."


def _back() -> Iterator[str]:
    yield "Kernel settings are saved before the first pass; each setting put back is read back."
    yield "After the last pass, on Ctrl-C and on failures the files are removed, the settings checked again."
    yield "If the controlling machine dies: at its next start, or by hand with: vnuma restore MACHINE."
    yield "A setting that somebody else changed meanwhile is never overwritten: it is left, and named."
    yield "Every change is a line of the audit log: vnuma audit."


def _machine(study: Study, plan: MachinePlan, index: int) -> VmChange:
    cells = [cell for cell in plan_cells(study, index) if cell.arm not in plan.left_out]
    return VmChange(
        name=plan.name,
        path=plan.machine.hostname,
        where=plan.machine.words,
        kind="Linux machine, measured as it is",
        power="",
        boots=f"{plan.boots} pass{'' if plan.boots == 1 else 'es'}",
        duration=f"about {duration(plan.seconds)}",
        settings=list(_settings(study, plan)),
        arms=[_arm(study, plan, label) for label in study.labels],
        order=[
            f"Block {block}: {', '.join(cell.label for cell in row)}"
            for block, row in groupby(cells, key=lambda cell: cell.block)
        ],
        risks=[Risk(f.id, f.severity, f.what, f.fix) for f in plan.findings if f.severity != "info"],
    )


def _settings(study: Study, plan: MachinePlan) -> Iterator[SettingLine]:
    now = {
        "numa_balancing": plan.machine.numa_balancing,
        "transparent_hugepages": plan.machine.transparent_hugepages,
    }
    for name, value in study.workload.kernel_settings().items():
        yield SettingLine(f"linux.{name}", now.get(name) or "none", value)
    folder = getattr(study.workload, "folder", "")
    yield SettingLine(f"{folder}/vnuma-page-cache", "not there", "the study's files")


def _arm(study: Study, plan: MachinePlan, label: str) -> ArmLine:
    shown = f"{label} (reference)" if label == study.reference else label
    if label in plan.left_out:
        return ArmLine(shown, f"left out: {plan.left_out[label]}", "")
    work = study.workload_of(label)
    reads, lies = getattr(work, "cpu_node", "?"), getattr(work, "memory_node", "?")
    return ArmLine(shown, f"node {reads}", _PLACES.get(lies, f"on node {lies}"))
