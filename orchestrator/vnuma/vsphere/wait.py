"""Wait for vSphere by push updates instead of polling.

Each wait has its own property collector, since updates queued for an earlier wait must not answer a later
one. It asks in slices, so that deadlines and Ctrl-C work within seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.errors import QuestionPending, VCenterUnreachable, VmNotFound, WaitTimeout
from vnuma.vsphere.declared import wrong_type
from vnuma.vsphere.faults import unreadable
from vnuma.vsphere.session import Query, Session, along, ask, starting

QUESTION = "runtime.question"

_LONGEST = 600


def question_words(question: vim.vm.QuestionInfo) -> str:
    """The question's text and its choices, on one line.

    `"This virtual machine might have been moved or copied." (choices: Cancel, I Moved It, I Copied It)`
    """
    text = " ".join(question.text.split())
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + " ..."
    choices = [choice.label or choice.key for choice in question.choice.choiceInfo or ()]
    return f'"{text}"' + (f" (choices: {', '.join(choices)})" if choices else "")


Clock = Callable[[], float]
Values = Mapping[str, Any]

_SLICE_S = 10.0
_TASK_PATHS = ("info.state", "info.error", "info.result")


def wait_for(
    session: Session,
    ref: vim.ManagedEntity | vim.Task,
    paths: Sequence[str],
    predicate: Callable[[Values], bool],
    timeout_s: float,
    what: str,
    *,
    vm: vim.VirtualMachine | None = None,
    clock: Clock = time.monotonic,
) -> Values:
    """Wait until `predicate` is true for an object's properties `paths`; returns them.

    Unset properties are absent. `what` completes "... in 5 min": "sql16 did not power off". A question of
    `vm` ends the wait at once, since it blocks the VM. Raises QuestionPending, WaitTimeout, SessionExpired,
    VmNotFound when the object goes away.
    """
    deadline = clock() + timeout_s
    seen: dict[str, Any] = {}
    version = ""
    with _collector(session, _watched(ref, paths, vm)) as collector:
        while True:
            # Whole seconds, within the deadline and below the limit of one answer.
            slice_s = min(_SLICE_S, session.transport.vcenter.timeout_s / 2, max(deadline - clock(), 0.0))
            options = Query.WaitOptions(maxWaitSeconds=math.ceil(slice_s))
            updates = collector.WaitForUpdatesEx(version, options)
            if updates is not None:
                version = updates.version
                with session.understanding():
                    _apply(session, updates, seen, what)
                if predicate(seen):
                    return seen
                refuse_question(session, vm, seen)
            if clock() >= deadline:
                raise WaitTimeout(
                    f"{what} in {spell(timeout_s)}.",
                    fix="Check the VM's recent tasks in vCenter; vnuma does not cancel them.",
                    seen=seen,
                )


def wait_for_task(
    session: Session,
    task: vim.Task,
    timeout_s: float,
    what: str,
    *,
    vm: vim.VirtualMachine | None = None,
) -> Any:
    """The result of a task once it has ended.

    Raises the task's fault as a direct call would: the errors of `Session.translate`, else the fault itself
    (vmodl.MethodFault). Raises WaitTimeout when it takes too long, and QuestionPending when `vm`, whose task
    it is, has a question.
    """
    values = wait_for(session, task, _TASK_PATHS, _has_ended, timeout_s, what, vm=vm)
    if str(values["info.state"]) == "success":
        return values.get("info.result")
    fault = values.get("info.error") or vmodl.fault.SystemError(reason="the task failed without an error")
    error = session.translate(fault, vm)
    if error:
        raise error from fault
    raise fault


def settle(session: Session, ref: vim.VirtualMachine, timeout_s: float) -> None:
    """Wait until a VM has no queued or running task, whoever started it and however it ends.

    Raises WaitTimeout and QuestionPending.
    """
    deadline = time.monotonic() + timeout_s
    while running := _unfinished(session, ref):
        if time.monotonic() > deadline:
            raise WaitTimeout(
                f"A task on {session.transport.name_of(ref)} did not end in {spell(timeout_s)}.",
                fix="Check the VM's recent tasks in vCenter; vnuma does not cancel them.",
            )
        for task in running:
            # vCenter forgets ended tasks after a while, so a missing task is not running.
            with suppress(VmNotFound):
                wait_for(
                    session,
                    task,
                    _TASK_PATHS[:1],
                    _has_ended,
                    deadline - time.monotonic(),
                    f"A task on {session.transport.name_of(ref)} did not end",
                    vm=ref,
                )


def _unfinished(session: Session, ref: vim.VirtualMachine) -> list[vim.Task]:
    """The VM's recent tasks that have not ended, in one read."""
    recent = starting(ref, along(vim.VirtualMachine, "recentTask"), wanted=False)
    tasks = session.retrieve(ask({vim.Task: _TASK_PATHS[:1]}, recent, or_gone=True))
    return [task.ref for task in tasks if "info.state" in task.values and not _has_ended(task.values)]


def _has_ended(task: Values) -> bool:
    return str(task.get("info.state")) in ("success", "error")


def refuse_question(session: Session, vm: vim.VirtualMachine | None, seen: Values) -> None:
    """Raise QuestionPending if the VM's properties `seen` have a question."""
    question = seen.get(QUESTION)
    if vm is None or question is None:
        return
    raise QuestionPending(
        f"{session.transport.name_of(vm)} waits for an answer in vCenter: {question_words(question)}.",
        fix="Answer it there, on the VM's Summary page; vnuma answers none, and vCenter tells nobody of it. "
        "Asked whether the VM was moved or copied: 'copied' changes its UUID and MAC addresses.",
    )


def _watched(
    ref: vim.ManagedEntity | vim.Task, paths: Sequence[str], vm: vim.VirtualMachine | None
) -> list[tuple[vim.ManagedEntity | vim.Task, Sequence[str]]]:
    """The object with its properties, and the VM's question, on the same or another object."""
    if vm is None:
        return [(ref, paths)]
    return [(ref, [*paths, QUESTION])] if vm is ref else [(ref, paths), (vm, [QUESTION])]


@contextmanager
def _collector(
    session: Session, watched: Sequence[tuple[vim.ManagedEntity | vim.Task, Sequence[str]]]
) -> Iterator[vmodl.query.PropertyCollector]:
    """A property collector that watches objects, destroyed afterwards."""
    collector = session.content.propertyCollector.CreatePropertyCollector()
    try:
        wanted = {type(ref): session.known(type(ref), paths) for ref, paths in watched}
        asked = ask(wanted, *(starting(ref) for ref, _ in watched))
        collector.CreateFilter(spec=asked, partialUpdates=False)
        yield collector
    finally:
        # A lost session took its collectors along; its error is already being raised.
        with suppress(VCenterUnreachable, VmNotFound):
            collector.DestroyPropertyCollector()


def _apply(session: Session, updates: Any, seen: dict[str, Any], what: str) -> None:
    """Merge an update set into `seen`. Raises what hides a property from the account."""
    for object_update in (item for entry in updates.filterSet for item in entry.objectSet):
        if str(object_update.kind) == "leave":
            raise VmNotFound(f"{what}: it was deleted meanwhile.", fix="Check vCenter.")
        for hidden in object_update.missingSet:
            raise session.translate(hidden.fault) or hidden.fault
        for change in object_update.changeSet:
            if change.val is None or str(change.op) in ("remove", "indirectRemove"):
                seen.pop(change.name, None)
            else:
                if (words := wrong_type(type(object_update.obj), change.name, change.val)) is not None:
                    raise unreadable(session.transport.vcenter.address, words)
                seen[change.name] = change.val


def spell(seconds: float) -> str:
    """A duration as text: 0.3 s, 45 s, 10 min."""
    if seconds >= 120 and seconds % 60 == 0:
        return f"{seconds / 60:g} min"
    return f"{seconds:g} s"
