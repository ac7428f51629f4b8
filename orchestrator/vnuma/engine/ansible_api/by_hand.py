"""The roles' work outside a run: single steps on one VM, without lease; the store gets only its changes.

Refuses a VM with a run's mark, and one that is not a test clone unless a change ticket permits it.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Literal

from vnuma.domain.arm.arm import Arm
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import Target
from vnuma.engine.cell.boot import power_on
from vnuma.engine.cell.guest_shutdown import PowerRules, shut_down
from vnuma.engine.cell.shape import Shaped, plan_shape, shape
from vnuma.engine.instance.sql_identity import require_by_hand
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import refuse_if_marked
from vnuma.engine.preflight.permit import Permit
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.timing import Timing, timed
from vnuma.sqlserver.database import dataset, ownership
from vnuma.sqlserver.database.dataset import DatasetFacts, DatasetSpec
from vnuma.sqlserver.instance import ready, server, topology
from vnuma.store.open import open_store
from vnuma.vsphere import power, read
from vnuma.vsphere.apply import no_fence
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.uptime import seconds_since_power_on
from vnuma.workloads.cross_join.settings import CrossJoin
from vnuma.workloads.cross_join.workload import cross_join_queries

PowerState = Literal["on", "off"]
_POWER = {"on": Power.ON, "off": Power.OFF}


def _permitted(session: Session, target: Target, permit: Permit) -> tuple[VmRef, VmFacts]:
    """The VM, if it may be changed by hand. Raises VmHeld and PreflightBlocked."""
    ref = read.find_vm(session, target.vm)
    vm = read.read_vm(session, ref)
    refuse_if_marked(vm)
    permit.require(vm.name, permit.tagged(target, vm.moid), test_clone=target.test_clone)
    return ref, vm


def shape_vm(target: Target, arm: Arm, rules: PowerRules, permit: Permit) -> Shaped:
    """Bring a VM into an arm's shape; does nothing if it has that shape already."""
    with connect(vcenter(target)) as session:
        ref, vm = _permitted(session, target, permit)
        host = read.read_host(session, session.host(vm.host_moid))
        return shape(
            session,
            ref,
            arm,
            rules,
            vm=vm,
            host=host,
            always_off=False,
            fence=no_fence,
            journal=_journal(vm, permit),
        )


def plan_vm_shape(target: Target, arm: Arm, permit: Permit) -> Shaped:
    """What `shape_vm` would change."""
    with connect(vcenter(target)) as session:
        _, vm = _permitted(session, target, permit)
        return plan_shape(arm, vm, read.read_host(session, session.host(vm.host_moid)))


def power_differs(target: Target, state: PowerState, permit: Permit) -> bool:
    """Whether `set_power` would change anything."""
    with connect(vcenter(target)) as session:
        _, vm = _permitted(session, target, permit)
        return vm.power is not _POWER[state]


def set_power(target: Target, state: PowerState, rules: PowerRules, permit: Permit) -> bool:
    """Power a VM on (until its Tools run) or shut its guest down. Returns whether that changed anything."""
    with connect(vcenter(target)) as session:
        ref, vm = _permitted(session, target, permit)
        if vm.power is _POWER[state]:
            return False
        if state == "on":
            power_on(
                session,
                ref,
                vm.host_moid,
                tools_timeout_s=rules.tools_s,
                task_timeout_s=rules.task_s,
                fence=no_fence,
                journal=_journal(vm, permit),
            )
        else:
            shut_down(session, ref, rules, no_fence, _journal(vm, permit))
        return True


def _journal(vm: VmFacts, permit: Permit) -> Journal:
    return Journal(open_store(store_url()), vm.key, vm.name, ticket=permit.ticket)


def wait_until_ready(target: Target, timeout_s: float, quiet: ready.QuietRule) -> dict[str, object]:
    """Wait for Tools and SQL Server, then read what the guest sees."""
    with connect(vcenter(target)) as session:
        ref = read.find_vm(session, target.vm)
        power.wait_for_guest(session, ref, timeout_s=timeout_s)
        age, at = seconds_since_power_on(session, ref), time.monotonic()
    sql = sql_server(target)
    powered_on_s = age + time.monotonic() - at  # logging out may take some time
    came_up = ready.wait_ready(
        sql, database=None, powered_on_s=powered_on_s, deadline_s=timeout_s, quiet=quiet
    )
    with connect_sql(sql) as connection:
        guest, shown = topology.read_topology(connection), server.read_server(connection)
    return {"ready": asdict(came_up), "guest": asdict(guest), "server": asdict(shown)}


def prepare_dataset(target: Target, spec: DatasetSpec) -> DatasetFacts:
    """Create the dataset, or verify an existing one. Raises PreflightBlocked."""
    with connect_sql(sql_server(target)) as connection:
        require_by_hand(target, connection)
        return dataset.prepare(connection, spec)


def has_dataset(target: Target, spec: DatasetSpec) -> bool:
    """Whether the whole dataset exists. Raises ForeignDatabase as `prepare_dataset` does."""
    with connect_sql(sql_server(target)) as connection:
        if not ownership.require_ours(connection, spec.database):
            return False
        try:
            dataset.verify(connection, spec)
        except ServerError as error:
            if error.native is not None:
                raise
            return False
        return True


def has_database(target: Target, database: str) -> bool:
    """Whether `drop_dataset` would find a database to drop. Raises ForeignDatabase as it does."""
    with connect_sql(sql_server(target)) as connection:
        return ownership.require_ours(connection, database)


def drop_dataset(target: Target, database: str) -> bool:
    """Drop the dataset's database. Returns whether it existed. Raises PreflightBlocked."""
    with connect_sql(sql_server(target)) as connection:
        require_by_hand(target, connection)
        return dataset.drop(connection, database)


def time_workload(
    target: Target, workload: CrossJoin, database: str, iterations: int
) -> list[dict[str, object]]:
    """Run a workload on the VM as it is and return every timing. Raises PreflightBlocked."""
    with connect_sql(sql_server(target), database) as connection:
        require_by_hand(target, connection)
        return [
            {"size": query.size, "form": query.form, "iteration": iteration}
            | _known(timed(connection, query, workload.timeout_s))
            for query in cross_join_queries(workload)
            for iteration in range(1, iterations + 1)
        ]


def _known(timing: Timing) -> dict[str, object]:
    return {name: value for name, value in vars(timing).items() if value is not None}
