"""Start a run: checks before the first row in the store, rows before the first change to a VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from vnuma.domain.order import plan_cells
from vnuma.domain.study import Study
from vnuma.engine import process_affinity, soft_numa
from vnuma.engine.baseline import host_document, refuse_if_marked, take_over
from vnuma.engine.connections import sql_server, vcenter
from vnuma.engine.findings import refuse_blocked
from vnuma.engine.permit import Permit
from vnuma.engine.persist import Patience, persist, tell_of_vm
from vnuma.engine.plan import VmPlan, plan_vm
from vnuma.engine.preflight import LOCK
from vnuma.engine.target import Target
from vnuma.errors import InputError
from vnuma.store import cells, facts, runs, vms
from vnuma.store.open import Store
from vnuma.store.rows import NewCell, Run, RunState, Vm
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect


@dataclass(frozen=True)
class Prepared:
    """A study that passed its preflight on every VM."""

    study: Study
    text: str
    targets: dict[str, Target]
    plans: dict[str, VmPlan]
    permit: Permit


def prepare(study: Study, text: str, targets: dict[str, Target], permit: Permit | None = None) -> Prepared:
    """Plan the study on every VM and refuse it if anything blocks. Changes nothing.

    Raises InputError for one VM under two names, PreflightBlocked with every blocking finding, VmHeld
    when another controller has a VM.
    """
    permit = permit or Permit()
    plans = {name: plan_vm(study, target, permit) for name, target in targets.items()}
    _refuse_twice(plans)
    findings = [finding for plan in plans.values() for finding in plan.findings]
    if all(finding.id == LOCK for finding in findings if finding.severity == "block"):
        for plan in plans.values():
            refuse_if_marked(plan.vm)
    refuse_blocked(findings)
    return Prepared(study, text, targets, plans, permit)


def _refuse_twice(plans: Mapping[str, VmPlan]) -> None:
    """Two names of one VM would take it from each other. Raises InputError."""
    names: dict[str, str] = {}
    for name, plan in plans.items():
        first = names.setdefault(plan.vm.key, name)
        if first != name:
            raise InputError(
                f"{first} and {name} are the same VM, {plan.vm.path}.", fix="Name each VM once in the study."
            )


def create_run(store: Store, prepared: Prepared, inventory: Path) -> Run:
    """Write the run, its VMs, their cells in order and what is known of host and VM. One transaction."""
    study = prepared.study
    driver = asdict(sql_server(next(iter(prepared.targets.values()))).driver)
    scenario = next((plan.simulated for plan in prepared.plans.values() if plan.simulated), None)
    with store.write() as connection:
        saved = runs.save_study(connection, study.name, prepared.text)
        run = runs.create_run(
            connection,
            saved,
            seed=study.design.seed,
            simulated=scenario,
            driver=driver,
            inventory=str(inventory.resolve()),
            ticket=prepared.permit.ticket,
        )
        for index, (name, plan) in enumerate(prepared.plans.items()):
            row = vms.add_vm(
                connection, run.id, vm_key=plan.vm.key, name=name, path=plan.vm.path, esxi_host=plan.host.name
            )
            order = plan_cells(study, index)
            cells.add_cells(
                connection,
                row.id,
                [NewCell(cell.arm, cell.label, cell.block, cell.position) for cell in order],
            )
            facts.add_vm_facts(connection, row.id, "host", host_document(plan.host))
            facts.add_vm_facts(connection, row.id, "vm", _vm_document(plan))
            facts.add_vm_facts(
                connection, row.id, "preflight", {finding.id: asdict(finding) for finding in plan.findings}
            )
    return run


def take(store: Store, run: Run, study: Study, vm: Vm, target: Target, patience: Patience) -> int:
    """Take one VM of the run over; its fencing token. Raises what `take_over` raises."""

    def once(_tries: int) -> int:
        with store.read() as connection:
            now = vms.get_vm(connection, vm.id)  # an earlier try may have saved its baseline
        with connect(vcenter(target)) as session:
            ref = read.find_vm(session, target.vm)
            return take_over(store, run, now, session, ref, guest=partial(_inside, study, target))

    return persist(once, patience, tell_of_vm(store, vm, "taking over"))


def _inside(study: Study, target: Target) -> dict[str, object]:
    """The guest's own settings that the study changes, as they are now."""
    return soft_numa.guest_baseline(study, target) | process_affinity.guest_baseline(study, target)


def take_all(
    store: Store, run: Run, study: Study, targets: Mapping[str, Target], patience: Patience
) -> dict[str, int]:
    """Take every VM of the run over; fencing tokens by VM name. Raises VmHeld when one is held."""
    with store.read() as connection:
        rows = {row.name: row for row in vms.vms_of_run(connection, run.id)}
    tokens = {}
    for name, target in targets.items():
        tokens[name] = take(store, run, study, rows[name], target, patience)
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.RUNNING)
    return tokens


def _vm_document(plan: VmPlan) -> dict[str, object]:
    vm = plan.vm
    return {
        "name": vm.name,
        "path": vm.path,
        "hardware_version": vm.hardware_version,
        "guest": vm.guest_full_name or vm.guest_id,
        "power": str(vm.power),
        "settings": dict(vm.settings),
    }
