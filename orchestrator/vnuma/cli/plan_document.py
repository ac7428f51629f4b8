"""`vnuma plan --document`: the plan as a page for a change board."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from vnuma import __version__
from vnuma.cli.design_lines import in_all
from vnuma.cli.plan_text import labelled, value_text
from vnuma.domain.study.order import plan_cells
from vnuma.domain.vm.plain_text import counted, duration
from vnuma.domain.vm.provenance import banner
from vnuma.domain.workloads.settings import INSTANCE_CHANGES
from vnuma.report.page.change_page import (
    MACHINES,
    VMS,
    ArmLine,
    ChangePage,
    ChangeWords,
    Pairs,
    Risk,
    SettingLine,
    VmChange,
    write_change_page,
)

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.arm_plan import ArmPlan
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.plan import VmPlan
    from vnuma.engine.preflight.target_plan import TargetPlan


_PLACES = {"interleave": "over all nodes in turn", "depleted": "where there is room: the node is full"}


@dataclass(frozen=True)
class _Page:
    """Differences between a page about VMs and one about machines."""

    words: ChangeWords
    each: str
    facts: Callable[[Study], Pairs]
    steps: Callable[[Study], Iterator[str]]
    restore_steps: tuple[str, ...]


@dataclass(frozen=True)
class _Change:
    """Differences between a VM's and a machine's plan."""

    where: str
    kind: str
    power: str
    settings: list[SettingLine]
    arms: list[ArmLine]


def write_document(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit, path: Path) -> Path:
    """Write the page. Raises InputError when the file cannot be written."""
    return write_change_page(change_page(study, text, plans, permit), path)


def change_page(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit) -> ChangePage:
    """The page for a study planned on these VMs or machines."""
    from vnuma.engine.lease.context import holder

    own = plans[0].by_kind(vm=lambda _: _VMS, machine=lambda _: _MACHINES)
    simulated = next((plan.simulated for plan in plans if plan.simulated), None)
    hours = study.allowed_hours
    blocks = sorted({f.id for plan in plans for f in plan.findings if f.severity == "block"})
    facts = (
        ("Change ticket", permit.ticket or "none"),
        ("Requested by", holder()),
        (own.each, ", ".join(plan.name for plan in plans)),
        ("When", hours.words if hours else "at any time: the study states no allowed hours"),
        ("Duration", f"about {duration(in_all(study, plans))} (assumed until measured)"),
        (own.words.cycles.capitalize(), str(sum(plan.boots for plan in plans))),
        *own.facts(study),
        ("Blocked by", ", ".join(blocks) or "nothing"),
    )
    return ChangePage(
        study=study.name,
        title=study.title,
        banner=banner(simulated),
        facts=facts,
        steps=tuple(own.steps(study)),
        restore_steps=own.restore_steps,
        vms=[_change(study, plan, index, own.words) for index, plan in enumerate(plans)],
        study_text=text,
        study_sha256=sha256(text.encode()).hexdigest(),
        version=__version__,
        words=own.words,
    )


def _change(study: Study, plan: TargetPlan, index: int, words: ChangeWords) -> VmChange:
    own = plan.by_kind(vm=partial(_vm, study), machine=partial(_machine, study))
    cells = [cell for cell in plan_cells(study, index) if cell.arm not in plan.left_out]
    return VmChange(
        name=plan.name,
        path=plan.path,
        where=own.where,
        kind=own.kind,
        power=own.power,
        boots=f"{plan.boots} {words.cycle if plan.boots == 1 else words.cycles}",
        duration=f"about {duration(plan.seconds)}",
        settings=own.settings,
        arms=own.arms,
        order=[
            f"Block {block}: {', '.join(cell.label for cell in row)}"
            for block, row in groupby(cells, key=lambda cell: cell.block)
        ],
        risks=[Risk(f.id, f.severity, f.what, f.fix) for f in plan.findings if f.severity != "info"],
    )


def _vm(study: Study, plan: VmPlan) -> _Change:
    release = f"ESXi {plan.host.release.version}, virtual hardware {plan.vm.hardware_version}"
    shown = partial(value_text, comma=", ", to=" to ")
    return _Change(
        where=f"on {plan.host.name}, {release}",
        kind="Test clone" if plan.test_clone else "Production VM (not marked as a test clone)",
        power="on" if plan.vm.power == "poweredOn" else "off",
        settings=[
            SettingLine(name, shown(now), "; ".join(map(shown, during)))
            for name, (now, during) in plan.touched.items()
        ],
        arms=[_vm_arm(study, arm) for arm in plan.arms],
    )


def _vm_arm(study: Study, arm: ArmPlan) -> ArmLine:
    label = labelled(study, arm.label)
    if arm.prediction is None:
        return ArmLine(label, f"impossible: {arm.impossible}", "")
    seen = arm.prediction
    return ArmLine(label, counted(seen.vnuma_nodes, "vNUMA node"), seen.confidence)


def _database(study: Study) -> Pairs:
    end = "created and dropped" if study.dataset.drop_after else "created and kept"
    return (("Database", f"{study.dataset.database} only, {end}; no other database is written to"),)


def _vm_steps(study: Study) -> Iterator[str]:
    power, work = study.power, study.workload
    yield f"The guest is shut down through VMware Tools, within {duration(power.shutdown_timeout_s)}."
    if power.on_shutdown_timeout == "power_off":
        yield "If it does not shut down in time, its power is cut: the study allows that."
    else:
        yield "If it does not shut down in time, it is left running and the study ends for this VM."
    yield "The VM is reconfigured for its arm; every setting is read back."
    yield "It is powered on at the same host; Tools, SQL Server and the topology in the guest are checked."
    for setting in sorted(work.changes):
        yield f"SQL Server's own settings: {INSTANCE_CHANGES[setting]}"
    yield (
        f"SQL Server runs {work.summary()}, "
        f"{study.design.warmups} to warm up and {study.design.iterations} timed for each."
    )


def _machine(study: Study, plan: MachinePlan) -> _Change:
    return _Change(
        where=plan.machine.words,
        kind="Linux machine, measured as it is",
        power="",
        settings=list(_settings(study, plan)),
        arms=[_machine_arm(study, plan, label) for label in study.labels],
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


def _machine_arm(study: Study, plan: MachinePlan, label: str) -> ArmLine:
    shown = labelled(study, label)
    if label in plan.left_out:
        return ArmLine(shown, f"left out: {plan.left_out[label]}", "")
    work = study.workload_of(label)
    reads, lies = getattr(work, "cpu_node", "?"), getattr(work, "memory_node", "?")
    return ArmLine(shown, f"node {reads}", _PLACES.get(lies, f"on node {lies}"))


def _machine_steps(study: Study) -> Iterator[str]:
    work, design = study.workload, study.design
    yield "Files of random bytes are made in the study's folder, once."
    if work.kernel_settings():
        yield "The kernel settings above are set, and read back."
    yield "The whole machine's page cache is dropped: other programs read from disk for a while."
    yield "The file is read into memory from one node; each node's FilePages prove where it is."
    yield f"It runs {work.summary()}, {design.warmups} to warm up and {design.iterations} timed for each."
    if work.kernel_settings():
        yield "The kernel settings are restored, and read back."


_VMS = _Page(
    VMS,
    "VMs",
    _database,
    _vm_steps,
    (
        "The configuration is saved before the first change. Each restored setting is read back.",
        (
            "The VM is restored after the last power-cycle, on Ctrl-C, on failures, and when the allowed "
            "hours end."
        ),
        "If the controlling machine dies: at its next start, or by hand with: vnuma restore VM.",
        (
            "Changes that somebody else made meanwhile are never overwritten: the VM is left as it is, and "
            "named."
        ),
        (
            "During the study the VM carries the advanced setting vnuma.run, which names the run; it is "
            "removed."
        ),
        "Every change is recorded in the audit log: vnuma audit.",
    ),
)
_MACHINES = _Page(
    MACHINES,
    "Machines",
    lambda _: (),
    _machine_steps,
    (
        "Kernel settings are saved before the first pass. Each restored setting is read back.",
        (
            "After the last pass, on Ctrl-C and on failures, the files are removed and the settings "
            "checked again."
        ),
        "If the controlling machine dies: at its next start, or by hand with: vnuma restore MACHINE.",
        (
            "A setting that somebody else changed meanwhile is never overwritten: it is left as it is, and "
            "named."
        ),
        "Every change is recorded in the audit log: vnuma audit.",
    ),
)
