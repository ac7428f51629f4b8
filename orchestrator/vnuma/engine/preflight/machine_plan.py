"""What a study would do on a machine: possible arms, findings, time. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from vnuma.domain.study.cell_time import assumed_cell_seconds
from vnuma.domain.study.order import columns
from vnuma.domain.study.study import Study
from vnuma.domain.vm.machine import MachineFacts, machine_facts
from vnuma.engine.access import machine_shell
from vnuma.engine.access.target import MACHINE_KEY, Target
from vnuma.engine.preflight.findings import Finding, worst_first
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.preflight import measurement_findings
from vnuma.engine.preflight.target_plan import T, TargetPlan
from vnuma.errors import MachineUnreachable, PreflightBlocked
from vnuma.workloads.interface import machine_workload_named
from vnuma.workloads.shell import Output, machine_question

NODES = "M01"
"""Finding: the machine has only one NUMA node, so an arm is left out."""


@dataclass(frozen=True, kw_only=True)
class MachinePlan(TargetPlan):
    """A study on one machine."""

    machine: MachineFacts
    measured: tuple[str, ...]
    """The arms that this machine can have."""

    def documents(self) -> dict[str, dict[str, object]]:
        """With facts about the machine."""
        return {"machine": asdict(self.machine) | {"left_out": dict(self.left_out)}, **super().documents()}

    def refuse_if_held(self) -> None:
        """Does nothing: a machine carries no mark, and its lease exists only in the store."""

    def by_kind(self, vm: Callable[..., T], machine: Callable[[MachinePlan], T]) -> T:
        del vm
        return machine(self)


def plan_machines(
    study: Study, targets: Mapping[str, Target], _permit: Permit, inventory: Path
) -> dict[str, MachinePlan]:
    """Read every machine once and make the plans. Changes nothing.

    Raises MachineUnreachable, or PreflightBlocked for one that gave no answer.
    """
    if not targets:
        return {}
    folder = getattr(study.workload, "folder", "/var/tmp")
    answers = machine_shell.run_on(list(targets), inventory, machine_question(folder))
    return {name: _plan(study, name, facts_of(name, answers[name])) for name in targets}


def facts_of(name: str, answer: Output | MachineUnreachable) -> MachineFacts:
    """Parse a machine's facts. Raises MachineUnreachable, or PreflightBlocked without an answer."""
    if isinstance(answer, MachineUnreachable):
        raise answer
    try:
        return machine_facts(answer.stdout)
    except ValueError:
        if "@@ uid" not in answer.stdout:
            raise PreflightBlocked(
                f"{name}: Ansible cannot become root there: {answer.last_words.rstrip('.')}.",
                fix="Log in as root, or let the user run sudo without a password or with "
                "ansible_become_password (in a vault).",
            ) from None
        raise PreflightBlocked(
            f"{name} did not report its NUMA nodes: {answer.last_words}.",
            fix="It must run Linux with /sys/devices/system/node (a kernel with CONFIG_NUMA).",
        ) from None


def _plan(study: Study, name: str, machine: MachineFacts) -> MachinePlan:
    why = {label: list(_obstacles(study, label, machine)) for label in study.labels}
    general = why[study.reference]
    one_node = len(machine.nodes) == 1
    left_out = {
        label: own[0].what
        for label, found in why.items()
        if one_node and (own := [item for item in found if item not in general])
    }
    findings = [item for label, found in why.items() if label not in left_out for item in found]
    findings += [_left_out(label, reason) for label, reason in left_out.items()]
    findings += measurement_findings(study)
    measured = tuple(label for label in study.labels if label not in left_out)
    passes = study.design.most_blocks * sum(arm in measured for arm, _ in columns(study))
    return MachinePlan(
        name=name,
        key=f"{MACHINE_KEY}{machine.identity}",
        path=machine.hostname,
        host_name=machine.hostname,
        findings=tuple(worst_first(findings)),
        boots=passes,
        seconds=passes * assumed_cell_seconds(study),
        simulated=machine.provenance,
        left_out=left_out,
        machine=machine,
        measured=measured,
    )


def _obstacles(study: Study, label: str, machine: MachineFacts) -> Iterator[Finding]:
    workload = machine_workload_named(study.workload.name)
    for found in workload.machine_obstacles(study.workload_of(label), machine):
        yield Finding.block("P29", found.what, found.fix)


def _left_out(label: str, reason: str) -> Finding:
    return Finding.warn(
        NODES, f"Arm {label} is left out: {reason}", "The matrix is 1 x 1: no memory in it is remote."
    )
