"""What a study would do to a VM: shapes, predictions, findings, time. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vnuma.domain.study.cell_time import assumed_cell_seconds
from vnuma.domain.study.order import columns
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.role import needed_privileges, purpose_of
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.target import Target, VmTarget
from vnuma.engine.lease.run_mark import refuse_if_marked
from vnuma.engine.preflight.arm_plan import ArmPlan, plan_arm
from vnuma.engine.preflight.findings import Finding, worst_first
from vnuma.engine.preflight.machine_plan import MachinePlan
from vnuma.engine.preflight.permit import Permit
from vnuma.engine.preflight.preflight import check, touched_settings, under_study
from vnuma.engine.preflight.server_findings import server_findings, unencrypted_connection, unused_login
from vnuma.engine.preflight.surroundings import accepted, passthrough_findings, vm_findings
from vnuma.engine.preflight.target_plan import T, TargetPlan
from vnuma.engine.preflight.workload_check import client_findings, locality_findings, workload_findings
from vnuma.vsphere import privileges, read, surroundings
from vnuma.vsphere.connect import connect
from vnuma.vsphere.host_options import most_cores_per_socket
from vnuma.words.provenance import scenario_of


@dataclass(frozen=True, kw_only=True)
class VmPlan(TargetPlan):
    """A study on one VM."""

    vm: VmFacts
    host: HostFacts
    arms: tuple[ArmPlan, ...]
    test_clone: bool

    def documents(self) -> dict[str, dict[str, object]]:
        """With facts about the host and the VM."""
        return {"host": _host_document(self.host), "vm": _vm_document(self.vm), **super().documents()}

    def refuse_if_held(self) -> None:
        """Raise VmHeld when the VM carries another run's mark."""
        refuse_if_marked(self.vm)

    def by_kind(self, vm: Callable[[VmPlan], T], machine: Callable[[MachinePlan], T]) -> T:
        del machine
        return vm(self)

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


def _host_document(host: HostFacts) -> dict[str, object]:
    """The facts about the host that decide whether results are comparable."""
    return {
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


def _vm_document(vm: VmFacts) -> dict[str, object]:
    return {
        "name": vm.name,
        "path": vm.path,
        "hardware_version": vm.hardware_version,
        "guest": vm.guest_full_name or vm.guest_id,
        "power": str(vm.power),
        "settings": dict(vm.settings),
    }


def plan_vms(
    study: Study, targets: Mapping[str, Target], permit: Permit, inventory: Path
) -> dict[str, VmPlan]:
    """The plans of VMs, with findings about the client machine if there is one."""
    vms = {name: target.as_vm() for name, target in targets.items()}
    plans = {name: plan_vm(study, target, permit) for name, target in vms.items()}
    if study.workload.client_host is None or not plans:
        return plans
    on = {name: vms[name] for name, plan in plans.items() if plan.vm.power is Power.ON}
    found = client_findings(inventory, study.workload.client_host, on)
    return {
        name: replace(plan, findings=tuple(worst_first([*plan.findings, *found.get(name, [])])))
        for name, plan in plans.items()
    }


def plan_vm(study: Study, target: VmTarget, permit: Permit) -> VmPlan:
    """Read the VM and its host and make the plan. Changes nothing."""
    with connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        vm, host = read.read_vm_on_host(session, ref)
        host = replace(host, max_cores_per_socket=most_cores_per_socket(session, vm))
        simulated = scenario_of(session.about.name)
        needed = needed_privileges(touched_settings(study, vm, host))
        missing = privileges.missing_privileges(session, ref, needed)
        seen = surroundings.read_surroundings(session, ref)
    tagged = permit.tagged(target, vm.moid)
    findings = [
        *(_missing(name, vm.name) for name in missing),
        *permit.findings(vm.name, tagged, test_clone=target.test_clone),
        *under_study(vm.name, vm.lease),
        *vm_findings(vm.name, host.name, seen),
        *passthrough_findings(study, vm, host, seen),
        *unencrypted_connection(target),
        *unused_login(target),
        *server_findings(target, vm, seen),
        *workload_findings(study, target, vm),
        *check(study, vm, replace(host, powered_on_mb=seen.powered_on_mb)),
        *locality_findings(study, vm, host),
    ]
    arms = tuple(plan_arm(study, label, vm, host) for label in study.labels)
    boots = study.design.most_blocks * len(columns(study))
    return VmPlan(
        name=vm.name,
        key=vm.key,
        path=vm.path,
        host_name=host.name,
        findings=tuple(worst_first(accepted(study, finding) for finding in findings)),
        boots=boots,
        seconds=boots * assumed_cell_seconds(study),
        simulated=simulated,
        vm=vm,
        host=host,
        arms=arms,
        test_clone=target.test_clone,
    )


def _missing(privilege: str, vm: str) -> Finding:
    return Finding.block(
        "P00",
        f"privilege {privilege} is missing on {vm}.",
        (
            f"It is needed for {purpose_of(privilege)}. docs/reference/vcenter-role.md lists the role, and "
            "has a playbook."
        ),
    )
