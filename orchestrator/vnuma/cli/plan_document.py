"""`vnuma plan --document`: the plan as a page for a change board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from vnuma.domain.workloads.settings import INSTANCE_CHANGES
from vnuma.report.page.template import filled, write_file
from vnuma.words.plain_text import counted, duration
from vnuma.words.provenance import banner

if TYPE_CHECKING:
    from vnuma.domain.study.study import Study
    from vnuma.engine.preflight.arm_plan import ArmPlan
    from vnuma.engine.preflight.machine_plan import MachinePlan
    from vnuma.engine.preflight.permit import Permit
    from vnuma.engine.preflight.target_plan import TargetPlan
    from vnuma.engine.preflight.vm_plan import VmPlan


_PLACES = {"interleave": "over all nodes in turn", "depleted": "where there is room: the node is full"}


@dataclass(frozen=True)
class _Texts:
    """What a page says about VMs, and what about machines that are not reshaped."""

    study: str
    """The kind of study in the page's heading: `vNUMA study`."""
    each: str
    """What happens to each VM or machine, after `Nothing has been changed yet.`"""
    cycle: str
    """What is repeated: `power-cycle`."""
    cycles: str
    columns: tuple[str, str]
    """Headings of what an arm is predicted to give, and of how sure that is."""
    no_setting: str
    named: str
    facts: Callable[[Study], Iterable[tuple[str, str]]]
    steps: Callable[[Study], Iterator[str]]
    restore_steps: tuple[str, ...]


def write_document(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit, path: Path) -> Path:
    """Write the page: one file that works offline and without scripts. Raises InputError."""
    write_file(path, page_text(study, text, plans, permit), "The document", fix="Name another file.")
    return path


def page_text(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit) -> str:
    """The page for a study planned on these VMs or machines."""
    from vnuma.engine.access.context import holder

    texts = plans[0].by_kind(vm=lambda _: _VMS, machine=lambda _: _MACHINES)
    simulated = next((plan.simulated for plan in plans if plan.simulated), None)
    hours = study.allowed_hours
    blocks = sorted({f.id for plan in plans for f in plan.findings if f.severity == "block"})
    facts = (
        ("Change ticket", permit.ticket or "none"),
        ("Requested by", holder()),
        (texts.named, ", ".join(plan.name for plan in plans)),
        ("When", hours.words if hours else "at any time: the study states no allowed hours"),
        ("Duration", f"about {duration(in_all(study, plans))} (assumed until measured)"),
        (texts.cycles.capitalize(), str(sum(plan.boots for plan in plans))),
        *texts.facts(study),
        ("Blocked by", ", ".join(blocks) or "nothing"),
    )
    return filled(
        "change.html.j2",
        "style.css",
        "page.js",
        study=study.name,
        title=study.title,
        banner=banner(simulated),
        texts=texts,
        facts=facts,
        steps=texts.steps(study),
        vms=[_change(study, plan, index, texts) for index, plan in enumerate(plans)],
        study_text=text,
        study_sha256=sha256(text.encode()).hexdigest(),
        version=__version__,
    )


def _change(study: Study, plan: TargetPlan, index: int, texts: _Texts) -> dict[str, object]:
    """Everything that happens to one VM or machine."""
    cells = [cell for cell in plan_cells(study, index) if cell.arm not in plan.left_out]
    return {
        "name": plan.name,
        "path": plan.path,
        "boots": f"{plan.boots} {texts.cycle if plan.boots == 1 else texts.cycles}",
        "duration": f"about {duration(plan.seconds)}",
        "order": [
            f"Block {block}: {', '.join(cell.label for cell in row)}"
            for block, row in groupby(cells, key=lambda cell: cell.block)
        ],
        "risks": [finding for finding in plan.findings if finding.severity != "info"],
        **plan.by_kind(vm=partial(_vm, study), machine=partial(_machine, study)),
    }


def _vm(study: Study, plan: VmPlan) -> dict[str, object]:
    release = f"ESXi {plan.host.release.version}, virtual hardware {plan.vm.hardware_version}"
    shown = partial(value_text, comma=", ", to=" to ")
    return {
        "where": f"on {plan.host.name}, {release}",
        "kind": "Test clone" if plan.test_clone else "Production VM (not marked as a test clone)",
        "power": "on" if plan.vm.power == "poweredOn" else "off",
        "settings": [
            (name, shown(now), "; ".join(map(shown, during))) for name, (now, during) in plan.touched.items()
        ],
        "arms": [_vm_arm(study, arm) for arm in plan.arms],
    }


def _vm_arm(study: Study, arm: ArmPlan) -> tuple[str, str, str]:
    """What the guest is predicted to see, or why the arm is impossible; and how sure that is."""
    label = labelled(study, arm.label)
    if arm.prediction is None:
        return label, f"impossible: {arm.impossible}", ""
    seen = arm.prediction
    others = "".join(f", else {count}" for count in seen.alternatives)
    why = f": {seen.because}" if seen.confidence == "low" else ""
    return label, counted(seen.vnuma_nodes, "vNUMA node"), f"{seen.confidence}{others}{why}"


def _database(study: Study) -> Iterable[tuple[str, str]]:
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


def _machine(study: Study, plan: MachinePlan) -> dict[str, object]:
    return {
        "where": plan.machine.words,
        "kind": "Linux machine, measured as it is",
        "power": "",
        "settings": list(_settings(study, plan)),
        "arms": [_machine_arm(study, plan, label) for label in study.labels],
    }


def _settings(study: Study, plan: MachinePlan) -> Iterator[tuple[str, str, str]]:
    now = {
        "numa_balancing": plan.machine.numa_balancing,
        "transparent_hugepages": plan.machine.transparent_hugepages,
    }
    for name, value in study.workload.kernel_settings().items():
        yield f"linux.{name}", now.get(name) or "none", value
    folder = getattr(study.workload, "folder", "")
    yield f"{folder}/vnuma-page-cache", "not there", "the study's files"


def _machine_arm(study: Study, plan: MachinePlan, label: str) -> tuple[str, str, str]:
    """Whose CPUs read, and where the pages are."""
    shown = labelled(study, label)
    if label in plan.left_out:
        return shown, f"left out: {plan.left_out[label]}", ""
    work = study.workload_of(label)
    reads, lies = getattr(work, "cpu_node", "?"), getattr(work, "memory_node", "?")
    return shown, f"node {reads}", _PLACES.get(lies, f"on node {lies}")


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


_VMS = _Texts(
    "vNUMA study",
    "Each VM below is reconfigured, power-cycled and measured again and again, and then restored to "
    "what it was.",
    "power-cycle",
    "power-cycles",
    ("The guest is predicted to see", "Confidence"),
    "No setting; the VM is power-cycled only.",
    "VMs",
    _database,
    _vm_steps,
    (
        "The configuration is saved before the first change. Each restored setting is read back.",
        "The VM is restored after the last power-cycle, on Ctrl-C, on failures, and when the allowed "
        "hours end.",
        "If the controlling machine dies: at its next start, or by hand with: vnuma restore VM.",
        "Changes that somebody else made meanwhile are never overwritten: the VM is left as it is, and "
        "named.",
        "During the study the VM carries the advanced setting vnuma.run, which names the run; it is removed.",
        "Every change is recorded in the audit log: vnuma audit.",
    ),
)
_MACHINES = _Texts(
    "Page cache study",
    "Each machine below is measured again and again as it is, with its page cache dropped before each pass; "
    "it is neither reconfigured nor booted.",
    "pass",
    "passes",
    ("Reads from", "Pages lie"),
    "No setting.",
    "Machines",
    lambda _: (),
    _machine_steps,
    (
        "Kernel settings are saved before the first pass. Each restored setting is read back.",
        "After the last pass, on Ctrl-C and on failures, the files are removed and the settings "
        "checked again.",
        "If the controlling machine dies: at its next start, or by hand with: vnuma restore MACHINE.",
        "A setting that somebody else changed meanwhile is never overwritten: it is left as it is, and "
        "named.",
        "Every change is recorded in the audit log: vnuma audit.",
    ),
)
