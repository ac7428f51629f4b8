"""The steps of a run on a Linux machine as the collection's actions call them: JSON in, JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vnuma.engine.access.target import AnyTarget
from vnuma.engine.ansible_api.actions import (
    Document,
    When,
    back_document,
    left_now,
    restored_document,
    step_of,
    why_left,
)
from vnuma.engine.cell.machine_pass import measure_pass
from vnuma.engine.lease.context import home_folder, open_context, open_run, vm_of_run
from vnuma.engine.restore.machine_restore_plan import edits_back
from vnuma.engine.restore.restoration import Choice
from vnuma.engine.restore.restore_machine import restore_machine
from vnuma.engine.run import unsupervised
from vnuma.errors import NotAtBaseline
from vnuma.workloads.shell import Shell


def measure(run: str, attempt: Mapping[str, Any], target: AnyTarget, shell: Shell) -> Document:
    """One pass over the machine."""
    with step_of(run, attempt, target) as (context, tried):
        return {"changed": True, "samples": measure_pass(context, tried, shell)}


def restore(run: str, target: AnyTarget, choice: Choice, when: When, shell: Shell) -> Document:
    """Put the machine back; with `when` "finished" only if none of its cells is left for another play."""
    left = why_left(run, target, when)
    if left.token is None or left.why:
        return {"changed": False, "why": left.why}
    context = open_context(run, target, left.token)
    context.fence()
    try:
        done = restore_machine(
            context.store,
            context.run,
            context.study,
            context.vm,
            home=home_folder(),
            shell=shell,
            choice=choice,
        )
    except NotAtBaseline as error:
        if not left.supervised:
            unsupervised.settle_away(context.store, context.run, error)
        raise
    if not left.supervised:
        unsupervised.settle(context.store, context.run)
    return {**back_document(done.changes), "restored": restored_document(done), "msg": done.words}


def plan_restore(run: str, target: AnyTarget, choice: Choice, when: When, shell: Shell) -> Document:
    """What `restore` would change. Raises RestoreConflict where that would."""
    store, row, study = open_run(run)
    vm = vm_of_run(store, row, target.name)
    left = left_now(store, row, study, vm, when)
    if left.token is None or left.why:
        return {"changed": False, "why": left.why}
    return back_document(edits_back(study, vm, shell, choice).values() if vm.baseline else ())
