"""Apply a change to a VM: turn it into vSphere's ConfigSpec, send it, wait, read it back.

Source, unless stated otherwise: VirtualMachineConfigSpec in VMware's API reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.vm.change import Change, Edit, change_to, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import (
    AUTOMATIC,
    DERIVED,
    TYPED,
    Settings,
    Value,
    ValueKind,
    is_extra_config,
    meant,
)
from vnuma.errors import ReadBackDiffers, ReconfigureRefused
from vnuma.vsphere.faults import describe, what_helps
from vnuma.vsphere.read import read_vm
from vnuma.vsphere.session import Session
from vnuma.vsphere.wait import wait_for_task

_SHAPE = ("numCPUs", "numCoresPerSocket")


def needs_shape(change: Change) -> bool:
    """Whether only half of the CPU shape is edited, so that the other half must be read first."""
    return sum(name in change.desired for name in _SHAPE) == 1


def specs_for(change: Change, current: Settings) -> tuple[vim.vm.ConfigSpec, ...]:
    """The requests that make a change, in order; none for no change, usually one.

    Two if a locked reservation is lowered: the lock keeps it at the memory size, so it is removed first.
    `current` supplies the unedited half of the CPU shape: vCPUs and cores per socket are always sent
    together, since a server may ignore one alone.
    """
    wanted = {edit.setting: _explicit(edit) for edit in change if edit.setting not in DERIVED}
    if wanted.get("memoryReservationLockedToMax") is False and "memoryReservation" in wanted:
        unlock = vim.vm.ConfigSpec(memoryReservationLockedToMax=False)
        del wanted["memoryReservationLockedToMax"]
        return unlock, _spec(wanted, current)
    return (_spec(wanted, current),) if wanted else ()


def unmet(change: Change, observed: Settings) -> Change:
    """The edits that do not read back as requested: `before` is what was read, `after` what was requested."""
    expected = {edit.setting: _explicit(edit) for edit in change}
    for name, automatic in AUTOMATIC.items():
        if expected.get(name) == 0 and (observed.get(automatic) or not observed.get(name)):
            del expected[name]
    if expected.get("memoryReservationLockedToMax") is True:
        expected.pop("memoryReservation", None)
    return change_to(observed, expected)


def fields_of(change: Change) -> tuple[str, ...]:
    """The ConfigSpec fields that a change needs; older APIs lack some."""
    names = {edit.setting for edit in change if not is_extra_config(edit.setting)} - DERIVED
    return tuple(sorted({TYPED[name].request[0] for name in names}))


def _explicit(edit: Edit) -> Value:
    """The value to send, with "not set" as its explicit value. Raises ValueError if there is none."""
    value = meant(edit.setting, edit.after)
    if value is None and edit.setting in TYPED.keys() - DERIVED:
        raise ValueError(f"{edit.setting} cannot be unset")
    return value


def _spec(wanted: Mapping[str, Value], current: Settings) -> vim.vm.ConfigSpec:
    spec = vim.vm.ConfigSpec()
    for name, value in _with_shape(wanted, current).items():
        if name in TYPED:
            _write(spec, name, value)
    keys = {name: value for name, value in wanted.items() if is_extra_config(name)}
    if keys:
        spec.extraConfig = [
            vim.option.OptionValue(key=key, value=_text(value)) for key, value in keys.items()
        ]
    return spec


def _with_shape(wanted: Mapping[str, Value], current: Settings) -> dict[str, Value]:
    """Add the other half of the CPU shape. Automatic cores per socket are not sent: a number would end the
    automatic mode, and 0 again forces a hardware reconfigure.
    """
    complete = dict(wanted)
    if any(name in wanted for name in _SHAPE):
        for name in _SHAPE:
            if name not in wanted and current.get(name) and not current.get(AUTOMATIC.get(name, "")):
                complete[name] = current[name]
    return complete


def _write(spec: vim.vm.ConfigSpec, name: str, value: Value) -> None:
    """Send only what is requested: an absent part of a field stays unchanged."""
    field, part = TYPED[name].request
    made: object = value
    if TYPED[name].kind is ValueKind.CPUS:  # an empty list clears an affinity; an absent one keeps it
        made = list(value) if isinstance(value, tuple) else []
    elif TYPED[name].kind is ValueKind.SHARES:  # a number is ignored with any other level than custom
        is_level = isinstance(value, str)
        made = vim.SharesInfo(level=value if is_level else "custom", shares=0 if is_level else value)
    if not part:
        setattr(spec, field, made)
        return
    known: Any = spec
    holder = getattr(spec, field) or known._GetPropertyInfo(field).type()
    setattr(holder, part, made)
    setattr(spec, field, holder)


def _text(value: Value) -> str:
    """An extraConfig value as text; empty removes the key."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


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
