"""The steps of a run as the collection's actions call them: JSON in, JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from time import sleep
from typing import Any

from vnuma.engine.attempt import Attempt
from vnuma.engine.boot import boot_cell, ready_cell
from vnuma.engine.claim import Nothing, claim, next_cell, why_no_more
from vnuma.engine.context import home_folder, open_context, open_run, vm_of_run
from vnuma.engine.dataset import drop_after_run, prepare_cell
from vnuma.engine.measure import measure_cell
from vnuma.engine.poweroff import PowerRules
from vnuma.engine.restore import Choice, plan_back, restore
from vnuma.engine.shape import change_document, prediction_document, shape_cell
from vnuma.engine.target import Target

Document = dict[str, Any]

# Another VM on the same host is being measured: its cell takes minutes, so a look each second is cheap.
LOOK_AGAIN_S = 1.0


def claim_cell(run: str, target: Target) -> Document:
    """Claim the next cell, waiting for the host to be free."""
    context = open_context(run, target)
    claimed = claim(context)
    while isinstance(claimed, Nothing) and not claimed.final:
        sleep(LOOK_AGAIN_S)
        claimed = claim(context)
    if isinstance(claimed, Nothing):
        return {"changed": False, "claimed": False, "why": claimed.why}
    return {"changed": True, "claimed": True, "attempt": asdict(Attempt.of(claimed))}


def peek_cell(run: str, target: Target) -> Document:
    """What `claim_cell` would claim. In check mode nothing is claimed, so the play ends there."""
    store, row, study = open_run(run)
    cell = next_cell(store, row, study, vm_of_run(store, row, target.name))
    why = f"check mode: next would be block {cell.block}, {cell.label}" if cell else "every cell has ended"
    return {"changed": cell is not None, "claimed": False, "why": why}


def shape(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Bring the VM into the attempt's arm's shape."""
    done = shape_cell(open_context(run, target), Attempt(**attempt))
    return {
        "changed": True,
        "changes": change_document(done.change),
        "prediction": prediction_document(done.prediction),
        "powered_off": done.powered_off,
    }


def boot(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Power on and wait for Tools."""
    boot_cell(open_context(run, target), Attempt(**attempt))
    return {"changed": True, "power": "poweredOn"}


def ready(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Wait for SQL Server and compare what the guest sees with what the arm needs."""
    seen = ready_cell(open_context(run, target), Attempt(**attempt))
    return {"changed": False, "guest": asdict(seen.guest), "server": asdict(seen.server)}


def dataset(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Prepare or verify the study's dataset."""
    prepared = prepare_cell(open_context(run, target), Attempt(**attempt))
    return {"changed": prepared.changed, "dataset": asdict(prepared)}


def measure(run: str, attempt: Mapping[str, Any], target: Target) -> Document:
    """Measure the cell."""
    return {"changed": True, "samples": measure_cell(open_context(run, target), Attempt(**attempt))}


def restore_vm(run: str, target: Target, choice: Choice) -> Document:
    """Put the VM back when none of its cells is left; a play that ends early leaves that to the next."""
    context = open_context(run, target)
    left = None if why_no_more(context) else next_cell(context.store, context.run, context.study, context.vm)
    if left:
        return {"changed": False, "why": f"cells are left: next is block {left.block}, {left.label}"}
    reason = drop_after_run(context)
    done = restore(
        context.store,
        context.run,
        context.vm,
        target,
        home=home_folder(),
        choice=choice,
        rules=PowerRules.of(context.study),
    )
    return {
        "changed": done.changed,
        "restored": asdict(done),
        "msg": done.words,
        "warnings": [reason] if reason else [],
    }


def plan_restore(run: str, target: Target) -> Document:
    """What putting the VM back would change."""
    store, row, _ = open_run(run)
    change = plan_back(vm_of_run(store, row, target.name), target)
    return {"changed": bool(change), "changes": change_document(change)}
