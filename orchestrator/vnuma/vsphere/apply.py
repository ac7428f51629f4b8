"""Apply a change to a VM: send it, wait, read it back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyVmomi import vim, vmodl

from vnuma.domain.vm.change import Change, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.errors import ReadBackDiffers, ReconfigureRefused
from vnuma.vsphere.faults import describe, what_helps
from vnuma.vsphere.read import read_vm
from vnuma.vsphere.session import Session
from vnuma.vsphere.spec import fields_of, needs_shape, specs_for, unmet
from vnuma.vsphere.wait import wait_for_task

RECONFIGURE_TIMEOUT_S = 300.0


class ChangedMeanwhile(ReconfigureRefused):
    """Somebody else changed the VM since it was read, so the change was not made."""


def no_fence() -> None:
    """For callers without a lease: nothing to check before a write."""


def reconfigure(
    session: Session,
    ref: vim.VirtualMachine,
    change: Change,
    *,
    seen: VmFacts | None = None,
    fence: Callable[[], None] = no_fence,
) -> VmFacts:
    """Apply a change and read the VM back.

    `fence` is called just before every write and may raise. With `seen`, the VM as it was just read, vSphere
    makes the change only if the VM still has that version. Raises ReconfigureRefused, ChangedMeanwhile,
    ReadBackDiffers, WaitTimeout.
    """
    _refuse_unknown(session, change)
    facts = seen or (read_vm(session, ref) if needs_shape(change) else None)
    specs = specs_for(change, facts.settings if facts else {})
    for spec in specs:
        if seen and facts:
            spec.changeVersion = facts.change_version
        submit(session, ref, spec, fence=fence)
        facts = read_vm(session, ref)
    if facts is None or not specs:
        facts = read_vm(session, ref)
    _refuse_differing(facts, unmet(change, facts.settings))
    return facts


def submit(
    session: Session,
    ref: vim.VirtualMachine,
    spec: vim.vm.ConfigSpec,
    *,
    fence: Callable[[], None],
) -> None:
    """Run one ReconfigVM_Task to its end. Raises ReconfigureRefused, ChangedMeanwhile, WaitTimeout."""
    fence()
    try:
        task = ref.ReconfigVM_Task(spec=spec)
        wait_for_task(
            session, task, RECONFIGURE_TIMEOUT_S, "vSphere did not finish reconfiguring the VM", vm=ref
        )
    except vmodl.MethodFault as fault:
        raise _refused(session.transport.name_of(ref), fault) from fault


def _refused(name: str, fault: vmodl.MethodFault) -> ReconfigureRefused:
    if isinstance(fault, vim.fault.ConcurrentAccess):
        return ChangedMeanwhile(
            f"{name} was changed by somebody else after it was read; nothing was written.",
            fix="Look at the VM's recent tasks in vCenter, then read it again.",
        )
    if isinstance(fault, vim.fault.InvalidPowerState):
        return ReconfigureRefused(
            f"vSphere refused the change to {name}, which is {fault.existingState}: {describe(fault)}",
            fix=f"Shut {name} down first: CPU shape and affinity change only while it is off.",
        )
    return ReconfigureRefused(
        f"vSphere refused the change to {name}: {describe(fault)}", fix=what_helps(fault)
    )


def _refuse_unknown(session: Session, change: Change) -> None:
    """Refuse fields unknown to an older API: pyVmomi would omit them and the change would seem to succeed."""
    unknown = [field for field in fields_of(change) if not session.knows(vim.vm.ConfigSpec, field)]
    if unknown:
        raise ReconfigureRefused(
            f"{session.about.name} (API {session.about.api_version}) does not have {', '.join(unknown)}.",
            fix="Use settings that this release has, or a newer vCenter.",
        )


def _refuse_differing(vm: VmFacts, differing: Change) -> None:
    if differing:
        shown = partial(value_words, unset="nothing")
        listed = "; ".join(
            f"{edit.setting} asked {shown(edit.after)}, reads {shown(edit.before)}" for edit in differing
        )
        raise ReadBackDiffers(
            f"vSphere accepted the change to {vm.name}, but it reads back differently: {listed}.",
            fix="This release or the VM's hardware version does not support the setting; see vnuma plan.",
        )
