"""`vnuma plan --document`: the plan as a page for a change board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby

from vnuma import __version__
from vnuma.cli.design_lines import in_all
from vnuma.cli.plan_text import CYCLES, labelled, value_text
from vnuma.domain.study.order import plan_cells
from vnuma.domain.study.study import Study
from vnuma.domain.workloads.settings import INSTANCE_CHANGES
from vnuma.engine.access.context import holder
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.preflight.plan import TargetPlan
from vnuma.report.page.page import filled
from vnuma.words.plain_text import counted, duration, plural
from vnuma.words.provenance import banner


def page_text(study: Study, text: str, plans: Sequence[TargetPlan], permit: Permit) -> str:
    """The page for a study planned on these targets, which works offline and without scripts."""
    simulated = next((plan.simulated for plan in plans if plan.simulated), None)
    hours, cycle = study.allowed_hours, CYCLES[study.replicate]
    blocks = sorted({f.id for plan in plans for f in plan.findings if f.severity == "block"})
    facts = (
        ("Change ticket", permit.ticket or "none"),
        ("Requested by", holder()),
        ("VMs" if study.shapes else "Machines", ", ".join(plan.name for plan in plans)),
        ("When", hours.words if hours else "at any time: the study states no allowed hours"),
        ("Duration", f"about {duration(in_all(study, plans))} (assumed until measured)"),
        (plural(cycle).capitalize(), str(sum(plan.boots for plan in plans))),
        *_database(study),
        ("Blocked by", ", ".join(blocks) or "nothing"),
    )
    return filled(
        "change.html.j2",
        "style.css",
        "page.js",
        study=study.name,
        title=study.title,
        banner=banner(simulated),
        each=_SHAPED if study.shapes else _AS_IT_IS,
        cycle=cycle,
        cycles=plural(cycle),
        facts=facts,
        steps=_steps(study),
        restore_steps=_restore_steps(study),
        vms=[_change(study, plan, index) for index, plan in enumerate(plans)],
        study_text=text,
        study_sha256=sha256(text.encode()).hexdigest(),
        version=__version__,
    )


_SHAPED = (
    "Each VM below is reconfigured, power-cycled and measured again and again, and then restored to what it "
    "was."
)
_AS_IT_IS = "Each machine below is measured again and again as it is: neither reconfigured nor booted."


def _change(study: Study, plan: TargetPlan, index: int) -> dict[str, object]:
    """Everything that happens to one target."""
    cells = [cell for cell in plan_cells(study, index) if cell.arm not in plan.left_out]
    return {
        "name": plan.name,
        "path": plan.path,
        "where": "; ".join(_where(plan)),
        "boots": counted(plan.boots, CYCLES[study.replicate]),
        "duration": f"about {duration(plan.seconds)}",
        "settings": list(_settings(study, plan)),
        "arms": [(labelled(study, label), *_arm(study, plan, label)) for label in study.labels],
        "order": [
            f"Block {block}: {', '.join(cell.label for cell in row)}"
            for block, row in groupby(cells, key=lambda cell: cell.block)
        ],
        "risks": [finding for finding in plan.findings if finding.severity != "info"],
    }


def _where(plan: TargetPlan) -> Iterator[str]:
    """What the target is, part by part."""
    if shape := plan.shape:
        yield "test clone" if shape.test_clone else "production VM (not marked as a test clone)"
        release = f"ESXi {shape.host.release.version}, virtual hardware {shape.vm.hardware_version}"
        yield f"on {shape.host.name}, {release}"
        yield "on now" if shape.vm.power == "poweredOn" else "off now"
    if plan.linux:
        yield plan.linux.words


def _settings(study: Study, plan: TargetPlan) -> Iterator[tuple[str, str, str]]:
    """Each setting that is changed: its name, its value now, and those during the study."""
    shown = partial(value_text, comma=", ", to=" to ")
    for name, (now, during) in plan.shape.touched.items() if plan.shape else ():
        yield name, shown(now), "; ".join(map(shown, during))
    for name, value in study.workload.kernel_settings().items():
        yield f"linux.{name}", getattr(plan.linux, name, None) or "none", value


def _arm(study: Study, plan: TargetPlan, label: str) -> tuple[str, str, str]:
    """What the guest is predicted to see, how sure that is, and what the workload does differently."""
    work = ", ".join(f"{name} {value}" for name, value in study.arm(label).workload.items())
    if label in plan.left_out:
        return f"left out: {plan.left_out[label]}", "", work
    arm = next((one for one in plan.shape.arms if one.label == label), None) if plan.shape else None
    if arm is None:
        return "as it is", "", work
    if arm.prediction is None:
        return f"impossible: {arm.impossible}", "", work
    seen = arm.prediction
    others = "".join(f", else {count}" for count in seen.alternatives)
    why = f": {seen.because}" if seen.confidence == "low" else ""
    return counted(seen.vnuma_nodes, "vNUMA node"), f"{seen.confidence}{others}{why}", work


def _database(study: Study) -> Iterable[tuple[str, str]]:
    if "database" not in study.workload.needs:
        return ()
    end = "created and dropped" if study.dataset.drop_after else "created and kept"
    return (("Database", f"{study.dataset.database} only, {end}; no other database is written to"),)


def _steps(study: Study) -> Iterator[str]:
    """What happens in each cell."""
    work, design = study.workload, study.design
    if study.shapes:
        yield from _boot_steps(study)
    for setting in sorted(work.changes):
        yield f"SQL Server's own settings: {INSTANCE_CHANGES[setting]}"
    yield from work.steps()
    if work.kernel_settings():
        yield "The kernel settings above are set and read back; at the end they are restored and read back."
    yield f"It runs {work.summary()}, {design.warmups} to warm up and {design.iterations} timed for each."


def _boot_steps(study: Study) -> Iterator[str]:
    power = study.power
    yield f"The guest is shut down through VMware Tools, within {duration(power.shutdown_timeout_s)}."
    if power.on_shutdown_timeout == "power_off":
        yield "If it does not shut down in time, its power is cut: the study allows that."
    else:
        yield "If it does not shut down in time, it is left running and the study ends for this VM."
    yield "The VM is reconfigured for its arm; every setting is read back."
    yield "It is powered on at the same host; Tools, the guest and the topology in it are checked."


def _restore_steps(study: Study) -> Iterator[str]:
    yield "Settings are saved before the first change. Each restored setting is read back."
    yield "It is restored after the last cell, on Ctrl-C, on failures, and when the allowed hours end."
    yield "If the controlling machine dies: at its next start, or by hand with: vnuma restore NAME."
    yield "Changes that somebody else made meanwhile are never overwritten: they are left, and named."
    if study.shapes:
        yield "During the study the VM carries the advanced setting vnuma.run, which names the run."
    yield "Every change is recorded in the audit log: vnuma audit."
