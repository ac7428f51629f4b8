"""The steps of a run as the collection's actions call them, JSON in, JSON out; with what check mode shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from time import sleep
from typing import Any, Literal

from vnuma.collector import collect_rarely
from vnuma.domain.arm.arm import Arm
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Edit, net, with_lock_reservation
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import driver, vcenter
from vnuma.engine.access.context import (
    VmContext,
    keep_run,
    open_context,
    supervisor_token,
)
from vnuma.engine.access.private_folder import tell_waiting
from vnuma.engine.access.secrets import Private
from vnuma.engine.access.target import Target
from vnuma.engine.cell.dataset import drop_after_run, drop_planned, planned_making, prepare_cell
from vnuma.engine.cell.measure_cell import measure_cell
from vnuma.engine.cell.shape import (
    POWER_OFF,
    POWER_ON,
    Shaped,
    change_document,
    edits_diff,
    look_and_plan,
    shaped_document,
)
from vnuma.engine.instance.sql_identity import is_proven
from vnuma.engine.instance.sql_settings import PROCESS_AFFINITY, RESOURCE_POOL, SETTINGS, Boot, guest_of
from vnuma.engine.lease.attempt import attempt_of
from vnuma.engine.lease.baseline import plan_baseline
from vnuma.engine.lease.whose_vm import find_own, marking
from vnuma.engine.restore.restore import plan_target, restore_target
from vnuma.engine.restore.restore_vm import Choice
from vnuma.engine.run import start
from vnuma.engine.run.next_cell import NoCell, claim_next_cell, peek_next_cell, why_no_more
from vnuma.errors import LoginRefused, NotAtBaseline, SqlUnreachable, VnumaError
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.sqlserver.client.connect import connect as connect_sql
from vnuma.store.open import Store
from vnuma.store.rows import Claim, Run
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect
from vnuma.vsphere.declared import load_types
from vnuma.workloads.shell import Shell

Document = dict[str, Any]
When = Literal["always", "finished"]

UNCHANGED: Document = {"changed": False}
"""Of a step without a hypervisor: there is nothing to do."""

# Another cell on the same host takes minutes, so polling every second is cheap.
LOOK_AGAIN_S = 1.0


def claim_cell(run: str, target: Target) -> Document:
    """Claim the next cell, waiting for the host to be free.

    In a play without a supervisor, take the VM over first if there is a cell to measure.
    """
    context = open_context(run, target, supervisor_token(target.name))
    if not context.token:
        why = why_no_cell(context)
        if why:
            return {"changed": False, "claimed": False, "why": why}
        context = start.take_over_in_play(context)
    with _working(context):
        claimed = claim_next_cell(context)
        while isinstance(claimed, NoCell) and not claimed.final:
            sleep(LOOK_AGAIN_S)
            claimed = claim_next_cell(context)
    if isinstance(claimed, NoCell):
        return {"changed": False, "claimed": False, "why": claimed.why}
    return {
        "changed": True,
        "claimed": True,
        "attempt": asdict(claimed),
        "diff": edits_diff(net(context.made)),
    }


def why_no_cell(context: VmContext) -> str | None:
    """Why this VM gets no further cell; None if it does."""
    return why_no_more(context) or (None if peek_next_cell(context) else "every cell has ended")


Step = Callable[[VmContext, Claim], Document | None]


def take_step(step: Step, run: str, attempt: Mapping[str, Any], target: Target, shell: Shell) -> Document:
    """Take one step of an attempt; returns its document with what it changed."""
    claim = attempt_of(attempt)
    context = open_context(run, target, claim.token, shell)
    with _working(context):
        seen = step(context, claim)
    made = net(context.made)
    return UNCHANGED if seen is None else {"changed": bool(made), "diff": edits_diff(made), **seen}


def measure(context: VmContext, attempt: Claim) -> Document:
    """Prepare or verify what the workload needs in the guest, then measure the cell."""
    prepared = prepare_cell(context, attempt)
    return {"changed": True, "dataset": prepared, "samples": measure_cell(context, attempt)}


def restore(run: str, target: Target, choice: Choice, when: When, shell: Shell | None = None) -> Document:
    """Restore a target; with `when` "finished", only if another play has none of its cells to measure.

    Raises VmHeld when another process supervises the run.
    """
    context = open_context(run, target, supervisor_token(target.name), shell)
    store, row, supervised = context.store, context.run, context.token > 0
    if not supervised:
        start.refuse_if_supervised(row)
        context = replace(context, token=start.lease_token(context) or 0)
    why = _why_not_restored(context, when)
    if why:
        return {"changed": False, "why": why}
    context.fence()
    try:
        with context.store.one_connection(), _living(context, start.restoring):
            dropped = drop_planned(context)
            reason = drop_after_run(context)
            done = restore_target(context, choice)
    except NotAtBaseline as error:
        if not supervised:
            start.settle_away(store, row, error)
        raise
    if not supervised:
        start.settle(store, row)
    changes = (*done.changes, *(() if reason else dropped))
    return {
        **changes_document(changes),
        "powered_off": done.powered_off,
        "restored": {
            "vm": done.vm,
            "changed": bool(done.changes),
            "settings": done.settings,
            "equal": done.equal,
            "power": str(done.power or Power.ON),
        },
        "msg": done.words,
        "warnings": [reason] if reason else [],
    }


def changes_document(changes: Iterable[Edit]) -> Document:
    """What was or would be restored, by setting, including power, SQL Server's settings and the dataset."""
    ordered = sorted(changes, key=lambda edit: edit.setting)
    return {"changed": bool(ordered), "changes": change_document(ordered), "diff": edits_diff(ordered)}


def plan_restore(
    run: str, target: Target, choice: Choice, when: When, shell: Shell | None = None
) -> Document:
    """What `restore` would change, also while another process supervises the run.

    Raises RestoreConflict if `restore` would.
    """
    context = open_context(run, target, shell=shell)
    context = replace(context, token=start.lease_token(context) or 0)
    why = _why_not_restored(context, when)
    if why:
        return {"changed": False, "why": why}
    planned = plan_target(context, choice)
    changes = (*planned.changes, *drop_planned(context))
    return {**changes_document(changes), "powered_off": planned.powered_off}


def _why_not_restored(context: VmContext, when: When) -> str | None:
    """Why the VM is not restored now: it is not held, or another play is to measure its next cell."""
    run, vm = context.run, context.vm
    if not context.token:
        return f"{run.name} does not hold {vm.name}: the VM was restored, or never taken over"
    if when == "always" or why_no_more(context):
        return None
    left = peek_next_cell(context)
    return f"cells remain: next is block {left.block}, {left.label}" if left else None


@contextmanager
def _working(context: VmContext) -> Iterator[None]:
    """Hold one connection to the store during a step, and send heartbeats."""
    with context.store.one_connection(), _living(context, start.supervising):
        yield


def _living(
    context: VmContext, during: Callable[[Store, Run], AbstractContextManager[None]]
) -> AbstractContextManager[None]:
    """Send heartbeats during a play that has no supervisor."""
    supervised = supervisor_token(context.target.name) is not None
    return nullcontext() if supervised else during(context.store, context.run)


# In check mode nothing is claimed, changed or stored. Each step of a cell starts from the VM as it is plus
# the planned changes of the steps before. The diff marks what only the boot can show as unknown.


def plan_claim(run: str, target: Target) -> Document:
    """What `claim_cell` would claim; for a VM also what the claim changes, and the next attempt.

    Raises VmHeld, InputError and PreflightBlocked as it does.
    """
    context = open_context(run, target)
    why = why_no_cell(context)
    cell = None if why else peek_next_cell(context)
    if cell is None:
        return {"changed": False, "claimed": False, "why": why}
    start.refuse_if_supervised(context.run)
    found = {
        "changed": True,
        "claimed": False,
        "why": f"check mode: the next cell would be block {cell.block}, {cell.label}",
    }
    if target.vcenter is None:  # then lease and baseline exist only in the store
        return found | _programs(context, cell.arm)
    context, facts = _taken(context)
    planned = (cell.position, cell.block, cell.arm, cell.label)
    attempt = Claim(*planned, id=0, cell_id=cell.id, number=0, token=context.token)
    return found | {
        "attempt": asdict(attempt),
        "diff": edits_diff([marking(context.run, facts)] if facts.lease is None else []),
    }


def plan_shape(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `shape_cell` would do. Raises what it raises before its first change."""
    context, _ = _taken(open_context(run, target))
    arm = context.study.arm(attempt_of(attempt).arm)
    vm, planned, proven = _looked(context, arm)
    inside = _inside(context, arm, planned.prediction, context.sql()) if proven else []
    off = vm.power is not Power.OFF
    made = [
        *inside,
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


def _inside(context: VmContext, arm: Arm, prediction: Prediction, server: SqlServer | None) -> list[Edit]:
    """What the arm's boot changes in SQL Server; without `server`, the current values are unknown."""
    to_come = Boot(context.study, arm, context.vm, prediction)
    planned = (setting.planned_for(to_come, server) for setting in SETTINGS)
    return [edit for edit in planned if edit]


def plan_boot(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `boot_cell` would do: every cell's shape step leaves the VM off."""
    del run, target
    attempt_of(attempt)
    return {"changed": True, "power": str(Power.ON), "diff": edits_diff(POWER_ON)}


def plan_ready(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
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


def plan_measure(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """What `measure` would create or run: the study's database, a resource pool for it, programs."""
    context, facts = _taken(open_context(run, target))
    arm = attempt_of(attempt).arm
    if "database" not in context.study.workload.needs:
        return {"changed": True} | _programs(context, arm)
    server = _answering(context, facts)
    made = [planned_making(context, server)]
    percent = context.study.workload_of(arm).pool_share
    if percent is not None:
        made.append(RESOURCE_POOL.planned_hold(server, context.study.dataset.database, percent))
    return {"changed": True, "diff": edits_diff(edit for edit in made if edit)}


def _programs(context: VmContext, arm: str) -> Document:
    """What the workload does in its guest or on its client, as a plan shows it."""
    return {"diff": {"prepared": "\n".join(context.study.workload_of(arm).steps())}}


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


def prepare_workers() -> None:
    """In a play under `vnuma run`, let its parent open the store and read the run, once for all workers.

    Ansible forks a worker for each task, which inherits the store, the parsed study, pyVmomi's types and the
    ODBC driver. Raises nothing: the step that needs an unusable store reports it.
    """
    try:
        private = Private.read()
        if private:
            load_types()
            driver()
            store = keep_run(private)
            store.while_away(lambda error: tell_waiting(Private.folder(), error.what))
            store.disconnect()  # the play's parent has no further use for it, each worker has
            store.connect_in_children()
            collect_rarely()
    except VnumaError:
        return
