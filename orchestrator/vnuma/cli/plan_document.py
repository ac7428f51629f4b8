"""`vnuma plan --document`: the plan in the words of a change board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from vnuma import __version__
from vnuma.cli.design_lines import in_all
from vnuma.cli.plan_machine_document import machines_page
from vnuma.cli.screen import duration, plural, simulated_banner
from vnuma.domain.study.order import plan_cells
from vnuma.domain.workloads.settings import INSTANCE_CHANGES
from vnuma.report.page.change_page import ArmLine, ChangePage, Risk, SettingLine, VmChange, write_change_page

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.arm_plan import ArmPlan
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.plan import TargetPlan, VmPlan


def write_document(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit, path: Path) -> Path:
    """Write the page. Raises InputError when the file cannot be written."""
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.plan import VmPlan

    vms = [plan for plan in plans if isinstance(plan, VmPlan)]
    machines = [plan for plan in plans if isinstance(plan, MachinePlan)]
    page = change_page(study, text, vms, permit) if vms else machines_page(study, text, machines, permit)
    return write_change_page(page, path)


def change_page(study: Study, text: str, plans: Sequence[VmPlan], permit: Permit) -> ChangePage:
    """The page of a study that was planned on these VMs."""
    from vnuma.engine.lease.context import holder

    simulated = next((plan.simulated for plan in plans if plan.simulated), None)
    hours = study.allowed_hours
    facts = (
        ("Change ticket", permit.ticket or "none"),
        ("Requested by", holder()),
        ("VMs", ", ".join(plan.vm.name for plan in plans)),
        ("When", hours.words if hours else "at any time: the study states no allowed hours"),
        ("Duration", f"about {duration(in_all(study, plans))} (assumed until measured)"),
        ("Power-cycles", str(sum(plan.boots for plan in plans))),
        ("Database", _database(study)),
        ("Blocked by", _blocked(plans)),
    )
    return ChangePage(
        study=study.name,
        title=study.title,
        banner=simulated_banner(simulated),
        facts=facts,
        steps=tuple(_steps(study)),
        back=tuple(_back(study)),
        vms=[_vm(study, plan, index) for index, plan in enumerate(plans)],
        study_text=text,
        study_sha256=sha256(text.encode()).hexdigest(),
        version=__version__,
    )


def _database(study: Study) -> str:
    end = "created and dropped" if study.dataset.drop_after else "created, and left there"
    return f"{study.dataset.database} only, {end}; no other database is written to"


def _blocked(plans: Sequence[VmPlan]) -> str:
    blocks = sorted({f.id for plan in plans for f in plan.findings if f.severity == "block"})
    return ", ".join(blocks) if blocks else "nothing"


def _steps(study: Study) -> Iterator[str]:
    power, work = study.power, study.workload
    yield f"The guest is shut down through VMware Tools, within {duration(power.shutdown_timeout_s)}."
    if power.on_shutdown_timeout == "power_off":
        yield "If it does not shut down in time its power is cut: the study allows that."
    else:
        yield "If it does not shut down in time it is left running and its VM's part of the study ends."
    yield "The VM is reconfigured as its arm says; every setting is read back."
    yield "It is powered on at the same host; Tools, SQL Server and what the guest sees are checked."
    for setting in sorted(work.changes):
        yield f"SQL Server's own settings: {INSTANCE_CHANGES[setting]}"
    yield (
        f"SQL Server runs {work.summary()}, "
        f"{study.design.warmups} to warm up and {study.design.iterations} timed for each."
    )


def _back(study: Study) -> Iterator[str]:
    yield "The configuration is saved before the first change; each setting put back is read back."
    yield "That happens after the last power-cycle, on Ctrl-C, on failures, and when the allowed hours end."
    yield "If the controlling machine dies: at its next start, or by hand with: vnuma restore VM."
    yield "What somebody else changed meanwhile is never overwritten: the VM is left as it is, and named."
    yield "While it lasts, the VM carries the advanced setting vnuma.run, which names the run; it is removed."
    yield "Every change is a line of the audit log: vnuma audit."


def _vm(study: Study, plan: VmPlan, index: int) -> VmChange:
    kind = "Test clone" if plan.test_clone else "Production VM (not marked as a test clone)"
    release = f"ESXi {plan.host.release.version}, virtual hardware {plan.vm.hardware_version}"
    cells = plan_cells(study, index)
    return VmChange(
        name=plan.vm.name,
        path=plan.vm.path,
        where=f"on {plan.host.name}, {release}",
        kind=kind,
        power="on" if plan.vm.power == "poweredOn" else "off",
        boots=plural(plan.boots, "power-cycle"),
        duration=f"about {duration(plan.seconds)}",
        settings=[
            SettingLine(name, _value(now), "; ".join(map(_value, during)))
            for name, (now, during) in plan.touched.items()
        ],
        arms=[_arm(arm, study.reference) for arm in plan.arms],
        order=[
            f"Block {block}: {', '.join(cell.label for cell in row)}"
            for block, row in groupby(cells, key=lambda cell: cell.block)
        ],
        risks=[Risk(f.id, f.severity, f.what, f.fix) for f in plan.findings if f.severity != "info"],
    )


def _arm(arm: ArmPlan, reference: str) -> ArmLine:
    label = f"{arm.label} (reference)" if arm.label == reference else arm.label
    if arm.prediction is None:
        return ArmLine(label, f"impossible: {arm.impossible}", "")
    seen = arm.prediction
    return ArmLine(label, plural(seen.vnuma_nodes, "vNUMA node"), seen.confidence)


def _value(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) if len(value) < 5 else _cpus(value)
    return str(value)


def _cpus(numbers: tuple[int, ...]) -> str:
    return f"{numbers[0]}, {numbers[1]} to {numbers[-1]} ({len(numbers)} CPUs)"
