"""Start a run, also in a play by hand: checks before the first row in the store, rows before the first change
to a VM.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from vnuma.domain.study.order import SCOPE, declaration, hash_of, plan_cells
from vnuma.domain.study.study import Study
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory, of_site
from vnuma.engine.access.locking import make_lockable
from vnuma.engine.access.target import Target
from vnuma.engine.instance.sql_identity import take_over_unshaped
from vnuma.engine.instance.sql_settings import guest_of
from vnuma.engine.lease.baseline import take_over
from vnuma.engine.lease.supervision import (
    BEAT_S,
    claim_supervision,
    heartbeat,
    refuse_if_alive,
    tolerating_full_store,
)
from vnuma.engine.lease.vcenter_retry import VCenterRetry, report_retry, retry_vcenter
from vnuma.engine.preflight.findings import Permit, refuse_blocked
from vnuma.engine.preflight.plan import TargetPlan, plan_all
from vnuma.engine.preflight.preflight import LOCK
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.engine.run.run_outcome import state_at_end, state_away
from vnuma.errors import InputError, NotAtBaseline, StoreError
from vnuma.store import cells, facts, leases, runs, sites
from vnuma.store.open import Store
from vnuma.store.rows import Run, RunState
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect

PERMIT = "permit"
"""Scope of the run's facts with the permit under which each site plans its VMs."""


@dataclass(frozen=True)
class StudyRequest:
    """What to plan: the study's text and the inventory as they were read."""

    study: Study
    text: str
    targets: Mapping[str, Target]
    permit: Permit
    inventory: Inventory

    @property
    def sites(self) -> list[str]:
        """The other sites at which the study has VMs."""
        return sorted({target.site for target in self.targets.values() if target.site})


ClientFacts = Mapping[str, object]
"""What affects times at this end: a SQL Server's driver and its encryption."""


def prepare(asking: StudyRequest) -> tuple[dict[str, TargetPlan], ClientFacts | None]:
    """Plan a run of the VMs that are worked on from here; also the driver here, if one has a SQL Server.

    Raises as `plan_all` and `refuse_unprepared` do.
    """
    here = of_site(asking.targets, None)
    plans = plan_all(asking.study, here, asking.permit, asking.inventory)
    client = client_of(here)
    refuse_unprepared(plans)
    return plans, client


def refuse_unprepared(plans: Mapping[str, TargetPlan]) -> None:
    """Raise InputError for one VM under two names, PreflightBlocked with every blocking finding, VmHeld when
    another controller has a VM.
    """
    names: dict[str, str] = {}
    for name, plan in plans.items():
        if (first := names.setdefault(plan.key, name)) != name:
            raise _same_vm(first, name, plan)
    findings = [finding for plan in plans.values() for finding in plan.findings]
    if all(finding.id == LOCK for finding in findings if finding.severity == "block"):
        for plan in plans.values():
            plan.refuse_if_held()
    refuse_blocked(findings)


def _same_vm(first: str, second: str, plan: TargetPlan) -> InputError:
    return InputError(
        f"{first} and {second} are the same VM, {plan.path}.", fix="Name each VM once in the study."
    )


def client_of(targets: Mapping[str, Target]) -> ClientFacts | None:
    """This end's part in times. None without a SQL Server."""
    for server in (sql_server(target) for target in targets.values() if target.sql):
        return {**asdict(server.driver), "encryption": server.encryption}
    return None


def create_run(
    store: Store, asking: StudyRequest, plans: Mapping[str, TargetPlan], client: ClientFacts | None
) -> Run:
    """Write the run, its VMs that are worked on from here, and its sites, in one transaction."""
    study = asking.study
    with store.write() as connection:
        saved = runs.save_study(connection, study.name, asking.text)
        run = runs.create_run(
            connection,
            saved,
            seed=study.design.seed,
            inventory=str(asking.inventory.path.resolve()),
            ticket=asking.permit.ticket,
        )
        # With a hash, before anything can be measured: what will be analysed and when the run ends.
        before = [one.name for one in runs.list_runs(connection) if one.study_name == study.name]
        plan = declaration(study, saved.sha256, [name for name in before if name != run.name])
        facts.add_run_facts(connection, run.id, SCOPE, {"plan": plan, "sha256": hash_of(plan)})
        if asking.sites:
            sites.add_sites(connection, run.id, asking.sites)
            facts.add_run_facts(connection, run.id, PERMIT, asdict(asking.permit))
        add_vms(connection, run, asking, plans, client)
        return runs.get_run(connection, run.id)


def add_vms(
    connection: Connection,
    run: Run,
    asking: StudyRequest,
    plans: Mapping[str, TargetPlan],
    client: ClientFacts | None,
) -> None:
    """Add the planned VMs to the run, or to the site's part of it: their cells in order, and facts.

    Raises InputError for a VM that the run already has.
    """
    known = {vm.vm_key: vm.name for vm in leases.vms_of_run(connection, run.id)}
    scenario = next((plan.simulated for plan in plans.values() if plan.simulated), None)
    runs.set_origin(connection, run, simulated=scenario, driver=client)
    for index, name in enumerate(asking.targets):
        if name not in plans:
            continue
        plan = plans[name]
        if plan.key in known:
            raise _same_vm(known[plan.key], name, plan)
        row = leases.add_vm(
            connection,
            run.id,
            vm_key=plan.key,
            name=name,
            path=plan.path,
            esxi_host=plan.host_name,
            site=run.site,
        )
        order = [cell for cell in plan_cells(asking.study, index) if cell.arm not in plan.left_out]
        cells.add_cells(connection, row.id, order)
        from_there = {facts.CLIENT: dict(client)} if client and run.site else {}
        for scope, document in (plan.documents() | from_there).items():
            facts.add_vm_facts(connection, row.id, scope, document)


def take_over_target(free: VmContext) -> VmContext:
    """Take one target of the run over; returns its context.

    Raises what `take_over` raises, and StoreError where the disk has no room for its lock.
    """
    make_lockable(free.home, free.vm.vm_key)
    take = _take_vm if free.target.vcenter else take_over_unshaped
    token = take(free)
    with free.store.read() as connection:
        return replace(free, vm=leases.get_vm(connection, free.vm.id), token=token)


def _take_vm(free: VmContext) -> int:
    store, vm = free.store, free.vm
    patience = VCenterRetry(free.study.power.vcenter_retry_s)

    def once(_tries: int) -> int:
        with store.read() as connection:
            now = leases.get_vm(connection, vm.id)  # an earlier attempt may have saved its baseline
        with connect(vcenter(free.target)) as session:
            ref = read.find_vm(session, free.target.vm)
            return take_over(replace(free, vm=now), session, ref, guest_of(free.study, free.target))

    return retry_vcenter(once, patience, report_retry(store, vm, "taking over", patience))


def take_over_targets(store: Store, run: Run, study: Study, targets: Mapping[str, Target]) -> dict[str, int]:
    """Take every VM of the run over; fencing tokens by VM name. Raises VmHeld when one is held."""
    with store.read() as connection:
        rows = {row.name: row for row in leases.vms_of_run(connection, run.id)}
    tokens = {
        name: take_over_target(VmContext(store, run, study, rows[name], target)).token
        for name, target in targets.items()
    }
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.RUNNING)
    return tokens


def reopen(store: Store, name: str, inventory: Path | None = None) -> tuple[Run, Progress]:
    """Make a run ready to continue; unfinished work is settled when its VMs are taken over.

    An `inventory` given replaces the run's, also for the restore. Raises VmHeld when its supervisor lives,
    InputError for an imported run or one that measures nothing.
    """
    with store.read() as connection:
        run = runs.get_run(connection, name)
        runs.refuse_imported(connection, run.id)
        runs.refuse_contract(connection, run)
        progress = progress_of(connection, run.name)
    refuse_if_alive(run)
    with store.write() as connection:
        runs.request_stop(connection, run.id, None)
        if inventory:
            runs.set_inventory(connection, run.id, str(inventory.resolve()))
            run = runs.get_run(connection, name)
    return run, progress


def what_it_did(progress: Progress) -> str:
    """The cells in progress; else those without a result, as a restore has left them."""
    busy = [f"{vm.name}: block {vm.block}, {vm.label}, step {vm.step}" for vm in progress.vms if vm.label]
    ended = [
        f"{vm.name}: block {vm.block}, {label} {outcome.partition(',')[0]}"
        for vm in progress.vms
        for label, outcome in vm.last[:1]
        if outcome != "valid"
    ]
    return "; ".join(busy or ended) or "no cell was under way"


# A play without a supervising `vnuma run`, launched by hand or by AWX, takes each VM over before its first
# cell, sends heartbeats while it works, and settles the run's state after it has restored the last VM. Its
# process is the workers' parent.


def take_over_in_play(context: VmContext) -> VmContext:
    """Take a VM over as a supervisor does; returns its context.

    Raises VmHeld when another process supervises the run, or another run has the VM.
    """
    store, run = context.store, context.run
    claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid()):
        taken = take_over_target(context)
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.RUNNING)
    return taken


def refuse_if_supervised(run: Run) -> None:
    """Raise VmHeld when a process other than this play supervises the run."""
    refuse_if_alive(run, os.getppid())


@contextmanager
def supervising(store: Store, run: Run, every_s: float = BEAT_S) -> Iterator[None]:
    """Send this play's heartbeats during a step. Raises VmHeld when another process supervises the run."""
    claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid(), every_s):
        yield


@contextmanager
def restoring(store: Store, run: Run) -> Iterator[None]:
    """The same during a restore, which also works on a full store."""
    with tolerating_full_store():
        claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid()):
        yield


def lease_token(context: VmContext) -> int | None:
    """The token with which the run holds this VM now; None when it does not."""
    return context.store.ask(leases.token_of, context.vm.vm_key, context.run.id)


def settle(store: Store, run: Run) -> None:
    """Set the run's last state, once every VM is restored."""
    with store.read() as connection:
        progress = progress_of(connection, run.name)
    if not all(vm.at_baseline for vm in progress.vms):
        return
    with store.write() as connection:
        runs.set_run_state(connection, run.id, state_at_end(progress, []))
        runs.clear_supervisor(connection, run)


def settle_away(store: Store, run: Run, why: NotAtBaseline) -> None:
    """Record that a VM could not be restored: the run waits for a person.

    A failure to write is ignored, since `why` is being raised.
    """
    with suppress(StoreError), store.write() as connection:
        runs.set_run_state(connection, run.id, state_away([why]))
