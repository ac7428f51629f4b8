"""What a study would do to a target: shapes, predictions, findings, time. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from pathlib import Path
from typing import Any

from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.study.order import assumed_cell_seconds, columns
from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Change, settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.linux import LinuxFacts, same_uuid
from vnuma.domain.vm.role import ROLE, needed_privileges
from vnuma.domain.vm.setting import Power, Value
from vnuma.domain.vm.surroundings import Surroundings
from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.guest_shell import linux_facts_of
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import UNSHAPED, Target
from vnuma.engine.cell.shape import plan_shape
from vnuma.engine.lease.whose_vm import refuse_if_marked
from vnuma.engine.preflight.findings import Finding, Permit, worst_first
from vnuma.engine.preflight.preflight import (
    WORKLOAD,
    accepted,
    check,
    client_findings,
    locality_findings,
    measurement_findings,
    passthrough_findings,
    server_findings,
    touched_settings,
    under_study,
    unencrypted_connection,
    unused_login,
    vm_findings,
    workload_findings,
)
from vnuma.errors import ArmImpossible, MachineUnreachable
from vnuma.vsphere import read, surroundings
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import most_cores_per_socket
from vnuma.words.provenance import scenario_of
from vnuma.workloads.interface import workload_named
from vnuma.workloads.shell import BOOT

# Settings that change what the guest shows; all others affect only the host.
_SEEN_INSIDE = frozenset({"numCPUs", "numCoresPerSocket", "memoryMB", "coresPerNumaNode"})


@dataclass(frozen=True)
class GuestView:
    """What Windows and SQL Server would show of an arm.

    `factors` are those of the workload except MAXDOP, with their values, since they change the work inside.
    """

    vcpus: int
    cores_per_socket: int
    node_sizes: tuple[int, ...]
    sql_cpu_nodes: int
    memory_mb: Value
    maxdop: int
    factors: tuple[tuple[str, str], ...] = ()


_DIFFERENCE = {
    "vcpus": "vCPUs",
    "cores_per_socket": "sockets",
    "node_sizes": "vNUMA nodes",
    "sql_cpu_nodes": "SQL CPU nodes",
    "memory_mb": "memory",
    "maxdop": "MAXDOP",
}


@dataclass(frozen=True)
class ArmPlan:
    """One arm on one VM: the changes to the VM as it is now, and the guest's predicted topology.

    An arm that this VM or host cannot have has the reason, its rule and what helps instead.
    """

    label: str
    change: Change | None = None
    prediction: Prediction | None = None
    view: GuestView | None = None
    host_side: Mapping[str, Value] | None = None
    """The arm's settings of the VM that the guest does not show."""
    node_factors: tuple[tuple[str, str], ...] = ()
    """The NUMA nodes that the workload uses, where it has a choice."""
    impossible: str | None = None
    rule: str = ""
    fix: str | None = None


@dataclass(frozen=True)
class IndistinguishableArms:
    """Arms that look the same, and what differs nevertheless."""

    arms: tuple[str, ...]
    differing: tuple[str, ...]


def plan_arm(study: Study, label: str, vm: VmFacts, host: HostFacts) -> ArmPlan:
    """Plan one arm, without touching anything."""
    arm = study.arm(label)
    try:
        planned = plan_shape(arm, vm, host)
        desired = desired_settings(arm, vm, host)
    except ArmImpossible as error:
        return ArmPlan(label, impossible=error.what, rule=error.rule, fix=error.fix)
    after = settings_after(vm.settings, desired)
    workload = study.workload_of(label)
    view = _view(arm, workload, planned.prediction, after)
    hidden = {name: after.get(name) for name in desired if name not in _SEEN_INSIDE}
    nodes = workload.chosen(workload.node_factors)
    return ArmPlan(label, planned.change, planned.prediction, view, hidden, nodes)


def _view(
    arm: Arm, workload: WorkloadSettings, prediction: Prediction, after: Mapping[str, Value]
) -> GuestView:
    sizes = prediction.node_sizes
    stated = after.get("numCoresPerSocket")
    # Automatic cores per socket become the node's size at power-on.
    per_socket = stated if isinstance(stated, int) and stated and arm.cores_per_socket else gcd(*sizes)
    return GuestView(
        sum(sizes),
        per_socket,
        sizes,
        prediction.cpu_nodes(soft_numa=arm.soft_numa != "off"),
        after.get("memoryMB"),
        workload.maxdop_hint,
        workload.chosen(workload.factors - {"maxdop"}),
    )


def same_to_the_guest(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms that neither guest nor SQL Server can tell apart: they differ in host settings at most."""
    return [
        IndistinguishableArms(
            tuple(arm.label for arm in group), _differing([arm.host_side or {} for arm in group])
        )
        for group in _groups(arms, lambda arm: arm.view)
    ]


def same_nodes(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms with the same vNUMA nodes, used alike, that differ in something else inside the guest."""
    found = []
    for group in _groups(arms, lambda arm: arm.view and (arm.view.node_sizes, arm.node_factors)):
        views = [arm.view for arm in group if arm.view]
        seen = tuple(
            words for name, words in _DIFFERENCE.items() if len({getattr(view, name) for view in views}) > 1
        )
        differing = (*seen, *_differing([dict(view.factors) for view in views]))
        if differing:
            found.append(IndistinguishableArms(tuple(arm.label for arm in group), differing))
    return found


def distinguished_by_workload(arms: Iterable[ArmPlan]) -> list[IndistinguishableArms]:
    """Arms of one shape that differ only in what the workload does on the vNUMA nodes."""
    found = []
    for group in _groups(arms, lambda arm: arm.view and replace(arm.view, factors=())):
        differing = _differing([dict(arm.node_factors) for arm in group])
        if differing:
            found.append(IndistinguishableArms(tuple(arm.label for arm in group), differing))
    return found


def doubts(arms: Iterable[ArmPlan]) -> dict[str, list[str]]:
    """Reasons for low confidence in predictions, each with its arms."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        if arm.prediction and arm.prediction.confidence == "low":
            found.setdefault(arm.prediction.because, []).append(arm.label)
    return found


def _groups(arms: Iterable[ArmPlan], key: Callable[[ArmPlan], Hashable]) -> list[list[ArmPlan]]:
    groups: dict[Hashable, list[ArmPlan]] = {}
    for arm in arms:
        if arm.prediction:
            groups.setdefault(key(arm), []).append(arm)
    return [group for group in groups.values() if len(group) > 1]


def _differing(settings: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = sorted({name for one in settings for name in one})
    return tuple(name for name in names if len({one.get(name) for one in settings}) > 1)


NODES = "M01"
"""Finding: a machine that nothing shapes has only one NUMA node, so an arm is left out."""


@dataclass(frozen=True)
class ShapePlan:
    """The hypervisor's part of a plan: the VM as it is, and what each arm makes of it."""

    vm: VmFacts
    host: HostFacts
    simulated: str | None
    findings: tuple[Finding, ...]
    arms: tuple[ArmPlan, ...]
    test_clone: bool

    @property
    def touched(self) -> dict[str, tuple[Value, tuple[Value, ...]]]:
        """Every setting that an arm changes: its present value, and its distinct values in the arms."""
        changes = [{edit.setting: edit for edit in arm.change} for arm in self.arms if arm.change is not None]
        now = {name: edit.before for change in changes for name, edit in change.items()}
        during: dict[str, list[Value]] = {name: [] for name in now}
        for change in changes:
            for name, before in now.items():
                value = change[name].after if name in change else before
                if value not in during[name]:
                    during[name].append(value)
        return {name: (now[name], tuple(during[name])) for name in now}


@dataclass(frozen=True, kw_only=True)
class TargetPlan:
    """A study on one target, with the plans of the parts that it has.

    `key` identifies the target across runs, whatever an inventory calls it; `path` is for reports.
    `host_name` is the host that it loads. `boots` is the number of cells: boots, or passes where nothing is
    booted. `seconds` is how long they take, as assumed. `simulated`: the lab's or an emulator's name for what
    stands in for it; None for the real thing.
    """

    name: str
    key: str
    path: str
    host_name: str
    findings: tuple[Finding, ...]
    """What would spoil the study there, the worst first."""
    boots: int
    seconds: float
    simulated: str | None
    left_out: Mapping[str, str]
    """Arms that are not measured, each with its reason."""
    shape: ShapePlan | None
    """None where nothing shapes it."""
    linux: LinuxFacts | None
    """The guest, where the study asks it through its shell."""

    def documents(self) -> dict[str, dict[str, object]]:
        """Facts about it, by scope, for the store."""
        guest = asdict(self.linux) | {"left_out": dict(self.left_out)} if self.linux else None
        return {
            **({"machine": guest} if guest else {}),
            **(_shape_documents(self.shape.host, self.shape.vm) if self.shape else {}),
            "preflight": {f"{n} {one.id}": asdict(one) for n, one in enumerate(self.findings, start=1)},
        }

    def refuse_if_held(self) -> None:
        """Raise VmHeld when the VM carries another run's mark."""
        if self.shape:
            refuse_if_marked(self.shape.vm)


def _shape_documents(host: HostFacts, vm: VmFacts) -> dict[str, dict[str, object]]:
    """The facts about host and VM that decide whether results are comparable."""
    of_host: dict[str, object] = {
        "name": host.name,
        "esxi": str(host.release),
        "model": f"{host.vendor} {host.model}",
        "cpu": host.cpu_model,
        "bios": host.bios,
        "packages": host.packages,
        "cores": host.cores,
        "threads": host.threads,
        "memory_mb": host.memory_mb,
        "numa_nodes": [{"id": n.id, "cpus": list(n.cpus), "memory_mb": n.memory_mb} for n in host.numa_nodes],
        **({"node_memory_estimated": True} if host.node_memory_estimated else {}),
    }
    of_vm: dict[str, object] = {
        "name": vm.name,
        "path": vm.path,
        "hardware_version": vm.hardware_version,
        "guest": vm.guest_full_name or vm.guest_id,
        "power": str(vm.power),
        "settings": dict(vm.settings),
    }
    return {"host": of_host, "vm": of_vm}


def plan_all(
    study: Study, targets: Mapping[str, Target], permit: Permit, inventory: Inventory
) -> dict[str, TargetPlan]:
    """Plan the study on every target, in the study's order. Changes nothing.

    Raises MachineUnreachable, or PreflightBlocked for a guest that gave no answer.
    """
    shapes = {name: plan_shape_of(study, one, permit) for name, one in targets.items() if one.vcenter}
    off = {name for name, shape in shapes.items() if shape.vm.power is not Power.ON}
    on = {name: one for name, one in targets.items() if name not in off}
    work, linux, found = study.workload, dict[str, LinuxFacts](), dict[str, list[Finding]]()
    if work.client_host is not None and work.runs_programs:
        inventory.require_client(work.client_host)
    if "shell" in work.needs:
        try:
            linux = linux_facts_of(on, inventory, work)
        except MachineUnreachable as error:
            if work.client_host is None:
                raise
            other = "If SQL Server shall show the guest's nodes: workload.guest: sql_server."
            raise MachineUnreachable(error.what, fix=f"{error.fix} {other}") from error
    client = None
    if work.client_host is not None and work.runs_programs:
        client = linux_facts_of([work.client_host], inventory, work)[work.client_host]
        hosts = [shape.host.moid for shape in shapes.values()]
        together = study.design.neighbours == "together"
        shared = list(shared_client_findings(work.client_host, hosts, together=together))
        found = {
            name: [*own_client_findings(work.client_host, client, linux.get(name), shapes.get(name)), *shared]
            for name in on
        }
    elif work.client_host is not None and shapes:
        found = client_findings(inventory, work.client_host, on)
    return {
        name: _plan(study, name, shapes.get(name), linux.get(name), client, found.get(name, []))
        for name in targets
    }


def shared_client_findings(client: str, hosts: Sequence[str], *, together: bool) -> Iterator[Finding]:
    """A client of VMs on these hosts that would load several at the same time."""
    if len(hosts) > 1 and (together or len(set(hosts)) > 1):
        yield Finding.warn(
            WORKLOAD,
            f"{client} would load several of {len(hosts)} VMs at once, and disturb each measurement.",
            "Give each VM a study of its own, with its own client.",
        )


def own_client_findings(
    name: str, client: LinuxFacts, guest: LinuxFacts | None, shape: ShapePlan | None = None
) -> Iterator[Finding]:
    """A client of a program that is the guest, this machine, or both."""
    here = Path(BOOT).read_text("ascii").strip()
    is_guest = guest is not None and client.boot == guest.boot
    is_vm = shape is not None and same_uuid(client.uuid, shape.vm.bios_uuid)
    same = {"this machine": client.boot == here, "the guest": is_guest or is_vm}
    if client.boot and any(same.values()):
        yield Finding.block(
            WORKLOAD,
            f"{name} is {' and '.join(what for what, is_it in same.items() if is_it)}: its load would be "
            "part of what is measured.",
            "As workload.client, name another machine; without it the program runs in the guest.",
        )


def _plan(
    study: Study,
    name: str,
    shape: ShapePlan | None,
    linux: LinuxFacts | None,
    client: LinuxFacts | None,
    found: Sequence[Finding],
) -> TargetPlan:
    inside, left_out = guest_findings(study, name, shape, linux, client)
    findings = [*inside, *found, *measurement_findings(study), *(shape.findings if shape else ())]
    boots = study.design.most_blocks * sum(arm not in left_out for arm, _ in columns(study))
    called, key, path, host = _identity(name, shape, linux)
    origin = shape.simulated if shape else linux.provenance if linux else None
    return TargetPlan(
        name=called,
        key=key,
        path=path,
        host_name=host,
        simulated=origin,
        findings=tuple(worst_first(accepted(study, finding) for finding in findings)),
        boots=boots,
        seconds=boots * assumed_cell_seconds(study),
        left_out=left_out,
        shape=shape,
        linux=linux,
    )


def _identity(name: str, shape: ShapePlan | None, linux: LinuxFacts | None) -> tuple[str, str, str, str]:
    """Name, key, path and host: the VM's where a hypervisor shapes it, else what the guest says of itself."""
    if shape:
        return shape.vm.name, shape.vm.key, shape.vm.path, shape.host.name
    assert linux, name  # a study that shapes nothing asks the guest
    return name, f"{UNSHAPED}{linux.identity}", linux.hostname, linux.hostname


def plan_shape_of(study: Study, target: Target, permit: Permit) -> ShapePlan:
    """Read the VM and its host and plan every arm. Changes nothing."""
    with connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        vm, host = read.read_vm_on_host(session, ref)
        host = replace(host, max_cores_per_socket=most_cores_per_socket(session, vm))
        simulated = scenario_of(session.about.name)
        needed = needed_privileges(touched_settings(study, vm, host))
        missing = surroundings.missing_privileges(session, ref, needed)
        seen = surroundings.read_surroundings(session, ref)
    tagged = permit.tagged(target, vm.moid)
    findings = [
        *(_missing(name, vm.name) for name in missing),
        *permit.findings(vm.name, tagged, test_clone=target.test_clone),
        *under_study(vm.name, vm.lease),
        *vm_findings(vm.name, host.name, seen),
        *passthrough_findings(study, vm, host, seen),
        *(sql_findings(study, target, vm, seen) if "sql_server" in study.workload.needs else ()),
        *check(study, vm, replace(host, powered_on_mb=seen.powered_on_mb)),
        *locality_findings(study, vm, host),
    ]
    arms = tuple(plan_arm(study, label, vm, host) for label in study.labels)
    return ShapePlan(vm, host, simulated, tuple(findings), arms, target.test_clone)


def sql_findings(study: Study, target: Target, vm: VmFacts, seen: Surroundings) -> Iterator[Finding]:
    """What would spoil the study in the guest's SQL Server."""
    yield from unencrypted_connection(target)
    yield from unused_login(target)
    yield from server_findings(target, vm, seen)
    yield from workload_findings(study, target, vm)


def guest_findings(
    study: Study,
    name: str,
    shape: ShapePlan | None,
    linux: LinuxFacts | None,
    client: LinuxFacts | None = None,
) -> tuple[list[Finding], dict[str, str]]:
    """What prevents the workload in a guest that is asked through its shell, or on its client, and the arms
    left out for it. A guest that SQL Server shows has only a client.

    Where nothing shapes it, a guest with one node has only the arms that need one. Where each arm is shaped,
    the arm's predicted nodes are what it asks for.
    """
    if not study.workload.runs_programs:
        return [], {}
    where = linux if "shell" in study.workload.needs else client
    if where is None:
        what = f"{name} is powered off: its guest cannot be asked what the study needs."
        return [Finding.block(WORKLOAD, what, "Power it on, then start again.")], {}
    workload = workload_named(study.workload.name)
    shaped = {arm.label: arm for arm in shape.arms} if shape else {}
    why = {
        label: [
            (Finding.block if found.blocks else Finding.warn)(WORKLOAD, found.what, found.fix)
            for found in workload.guest_obstacles(
                study.workload_of(label), client or _seen_by(shaped.get(label), where)
            )
        ]
        for label in study.labels
    }
    general, one_node = why[study.reference], shape is None and len(where.nodes) == 1
    left_out = {
        label: own[0].what
        for label, found in why.items()
        if one_node and (own := [item for item in found if item not in general])
    }
    findings = [item for label, found in why.items() if label not in left_out for item in found]
    remedy = "The matrix is 1 x 1: no memory in it is remote."
    for label, reason in left_out.items():
        findings.append(Finding.warn(NODES, f"Arm {label} is left out: {reason}", remedy))
    return findings, left_out


def _seen_by(arm: ArmPlan | None, linux: LinuxFacts) -> LinuxFacts:
    """The guest as it will see itself in this arm's shape; as it is where nothing shapes it."""
    if arm is None or arm.prediction is None or arm.view is None:
        return linux
    return linux.with_nodes(arm.prediction.node_sizes, int(str(arm.view.memory_mb)))


def _missing(privilege: str, vm: str) -> Finding:
    return Finding.block(
        "P00",
        f"privilege {privilege} is missing on {vm}.",
        (
            f"It is needed for {ROLE[privilege]}. docs/reference/vcenter-role.md lists the role, and "
            "has a playbook."
        ),
    )
