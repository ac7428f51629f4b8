"""What a study would do on a machine, before anything is touched: arms that it can have, findings, time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from vnuma.domain.study.cell_time import assumed_cell_seconds
from vnuma.domain.study.order import columns
from vnuma.domain.study.study import Study
from vnuma.domain.vm.machine import MachineFacts, machine_facts
from vnuma.engine.access import machine_shell
from vnuma.engine.access.target import MACHINE_KEY
from vnuma.engine.preflight.findings import Finding, worst_first
from vnuma.engine.preflight.preflight import measurement_findings
from vnuma.errors import MachineUnreachable, PreflightBlocked
from vnuma.workloads.find import machine_workload_named
from vnuma.workloads.machine_question import machine_question
from vnuma.workloads.shell import Output

T = TypeVar("T")

NODES = "M01"
"""Finding: the machine has one NUMA node, so that an arm is left out."""


@dataclass(frozen=True)
class MachinePlan:
    """A study on one machine."""

    name: str
    machine: MachineFacts
    measured: tuple[str, ...]
    """The arms that this machine can have."""
    left_out: Mapping[str, str]
    """The others, each with its reason."""
    findings: tuple[Finding, ...]
    boots: int
    seconds: float

    @property
    def key(self) -> str:
        """Identifies the machine across runs, whatever an inventory calls it."""
        return f"{MACHINE_KEY}{self.machine.identity}"

    @property
    def path(self) -> str:
        """Where it is, for reports."""
        return self.machine.hostname

    @property
    def host_name(self) -> str:
        """What it loads: itself."""
        return self.machine.hostname

    @property
    def simulated(self) -> str | None:
        """That its figures are an emulator's or the lab's; None for hardware."""
        return self.machine.provenance

    def documents(self) -> dict[str, dict[str, object]]:
        """What is known of it, by scope, for the store."""
        return {
            "machine": asdict(self.machine) | {"left_out": dict(self.left_out)},
            "preflight": {f"{n} {one.id}": asdict(one) for n, one in enumerate(self.findings, start=1)},
        }

    def refuse_if_held(self) -> None:
        """A machine carries no mark: its lease is the store's alone."""

    def by_kind(self, vm: Callable[..., T], machine: Callable[[MachinePlan], T]) -> T:
        """See `TargetPlan`."""
        del vm
        return machine(self)


def plan_machines(study: Study, names: Sequence[str], inventory: Path) -> dict[str, MachinePlan]:
    """Ask every machine once and work out the plans. Changes nothing.

    Raises MachineUnreachable, or PreflightBlocked for one that gave no answer.
    """
    if not names:
        return {}
    folder = getattr(study.workload, "folder", "/var/tmp")
    answers = machine_shell.run_on(names, inventory, machine_question(folder))
    return {name: _plan(study, name, facts_of(name, answers[name])) for name in names}


def facts_of(name: str, answer: Output | MachineUnreachable) -> MachineFacts:
    """What a machine said of itself. Raises MachineUnreachable, or PreflightBlocked when it said nothing."""
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
        name,
        machine,
        measured,
        left_out,
        tuple(worst_first(findings)),
        passes,
        passes * assumed_cell_seconds(study),
    )


def _obstacles(study: Study, label: str, machine: MachineFacts) -> Iterator[Finding]:
    workload = machine_workload_named(study.workload.name)
    for found in workload.machine_obstacles(study.workload_of(label), machine):
        yield Finding("P29", "block", found.what, found.fix)


def _left_out(label: str, reason: str) -> Finding:
    return Finding(
        NODES,
        "warn",
        f"Arm {label} is left out: {reason}",
        "The matrix is 1 x 1: no memory in it is remote.",
    )
