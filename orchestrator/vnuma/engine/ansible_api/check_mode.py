"""A run's next cell in check mode: what its steps would change. Nothing is claimed, changed or stored.

Each step starts from the VM as it is now plus the planned changes of the earlier steps. The diff marks what
only the boot can show as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from vnuma.domain.arm.arm import Arm
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Edit, with_lock_reservation
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.context import VmContext, open_context
from vnuma.engine.access.target import Target
from vnuma.engine.ansible_api.actions import UNCHANGED, Document, why_no_cell
from vnuma.engine.cell.dataset import planned_making
from vnuma.engine.cell.shape import (
    POWER_OFF,
    POWER_ON,
    Shaped,
    edits_diff,
    look_and_plan,
    shaped_document,
)
from vnuma.engine.instance.sql_identity import is_proven
from vnuma.engine.instance.sql_settings import PROCESS_AFFINITY, RESOURCE_POOL, SETTINGS, Boot, guest_of
from vnuma.engine.lease.attempt import attempt_of
from vnuma.engine.lease.baseline import plan_baseline
from vnuma.engine.lease.whose_vm import find_own, marking
from vnuma.engine.run import unsupervised
from vnuma.engine.run.next_cell import peek_next_cell
from vnuma.errors import LoginRefused, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.store.rows import Claim
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect


def claim(run: str, target: Target) -> Document:
    """What `actions.claim_cell` would claim; for a VM also what the claim changes, and the next attempt.

    Raises VmHeld, InputError and PreflightBlocked as it does.
    """
    context = open_context(run, target)
    why = why_no_cell(context)
    cell = None if why else peek_next_cell(context)
    if cell is None:
        return {"changed": False, "claimed": False, "why": why}
    unsupervised.refuse_if_supervised(context.run)
    found = {
        "changed": True,
        "claimed": False,
        "why": f"check mode: the next cell would be block {cell.block}, {cell.label}",
    }
    if target.vcenter is None:  # then lease and baseline exist only in the store
        return found
    context, facts = _taken(context)
    planned = (cell.position, cell.block, cell.arm, cell.label)
    attempt = Claim(*planned, id=0, cell_id=cell.id, number=0, token=context.token)
    return found | {
        "attempt": asdict(attempt),
        "diff": edits_diff([marking(context.run, facts)] if facts.lease is None else []),
    }


def shape(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `shape_cell` would do. Raises what it raises before its first change."""
    context, _ = _taken(open_context(run, target))
    arm = context.study.arm(attempt_of(attempt).arm)
    vm, planned, proven = _looked(context, arm)
    inside = _inside(context, arm, planned.prediction, context.sql()) if proven else []
    off = vm.power is not Power.OFF
    made = [
        *(edit for edit in inside if edit),
        *(POWER_OFF if off else ()),
        *with_lock_reservation(planned.change, vm.settings),
    ]
    return shaped_document(planned) | {"changed": True, "powered_off": off, "diff": edits_diff(made)}


def _looked(context: VmContext, arm: Arm) -> tuple[VmFacts, Shaped, bool]:
    """The VM, its planned shape, and whether this run has verified the SQL Server of this boot."""
    with connect(vcenter(context.target)) as session:
        ref = find_own(session, context.vm)
        vm, _, planned = look_and_plan(context, arm, session, ref)
        return vm, planned, vm.power is Power.ON and is_proven(context, session, ref)


def _inside(
    context: VmContext, arm: Arm, prediction: Prediction, server: SqlServer | None
) -> list[Edit | None]:
    """What the arm's boot changes in SQL Server; without `server`, the current values are unknown."""
    to_come = Boot(context.study, arm, context.vm, prediction)
    return [setting.planned_for(to_come, server) for setting in SETTINGS]


def boot(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `boot_cell` would do: every cell's shape step leaves the VM off."""
    del run, target
    attempt_of(attempt)
    return {"changed": True, "power": str(Power.ON), "diff": edits_diff(POWER_ON)}


def ready(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Which SQL Server settings `ready_cell` would change: those whose values were unknown before."""
    context, facts = _taken(open_context(run, target))
    if "sql_server" not in context.study.workload.needs:
        return UNCHANGED
    arm = context.study.arm(attempt_of(attempt).arm)
    server = _answering(context, facts)
    affinity = PROCESS_AFFINITY.baseline_of(context.vm)
    made = [] if affinity is None else [PROCESS_AFFINITY.planned(server, affinity)[0]]
    _, planned, proven = _looked(context, arm)
    if not proven:  # otherwise `shape` has set them
        made += _inside(context, arm, planned.prediction, server)
    edits = [edit for edit in made if edit]
    return {"changed": bool(edits), "diff": edits_diff(edits)}


def measure(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `actions.measure` would create: the study's database, and a resource pool for it."""
    context, facts = _taken(open_context(run, target))
    if "database" not in context.study.workload.needs:
        return {"changed": True}
    server = _answering(context, facts)
    made = [planned_making(context, server)]
    percent = context.study.workload_of(attempt_of(attempt).arm).pool_share
    if percent is not None:
        made.append(RESOURCE_POOL.planned_hold(server, context.study.dataset.database, percent))
    return {"changed": True, "diff": edits_diff(edit for edit in made if edit)}


def _taken(free: VmContext) -> tuple[VmContext, VmFacts]:
    """The context after the claim, with the baseline that it would commit; and the VM as it is."""
    target = free.target
    with connect(vcenter(target)) as session:
        facts = read.read_vm(session, read.find_vm(session, target.vm))
    baseline = plan_baseline(free.store, free.run, free.vm, facts, guest_of(free.study, target))
    return replace(free, vm=replace(free.vm, baseline=baseline)), facts


def _answering(context: VmContext, facts: VmFacts) -> SqlServer | None:
    """The VM's SQL Server, if it accepts a login now."""
    if facts.power is not Power.ON:
        return None
    with suppress(SqlUnreachable, LoginRefused), connect_sql(context.sql()):
        return context.sql()
    return None
