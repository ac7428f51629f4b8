"""vSphere's faults: their names, their texts, and the errors that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.errors import (
    EnvironmentProblem,
    PrivilegeMissing,
    UnreadableAnswer,
    VCenterUnreachable,
    VmNotFound,
    VnumaError,
)


class SessionExpired(VCenterUnreachable):
    """The session expired, was ended, or vCenter restarted."""


class UnexpectedFault(EnvironmentProblem):
    """vSphere answered with a fault that no caller expected."""


def unexpected(fault: Exception, address: str) -> UnexpectedFault:
    """The error for a fault without a special meaning: vSphere's text, and where to look."""
    return UnexpectedFault(
        f"{address} answered {describe(fault)}.",
        fix="Look at the VM's recent tasks and events in vCenter, then try again.",
    )


def unreadable(address: str, words: str) -> UnreadableAnswer:
    """The error for an answer whose property decides something and has an unexpected type."""
    return UnreadableAnswer(
        f"{address} answered, but vnuma cannot read the answer: {words}.",
        fix="Report it with the file of vnuma doctor --record FILE.",
    )


class NotNow(VCenterUnreachable):
    """A temporary failure: another task is running, or a host is out of reach."""


# Temporary faults: another task or a backup works on the VM, or vCenter has lost its host.
_PASSING = (
    *(vim.fault.TaskInProgress, vim.fault.MethodDisabled),
    *(vmodl.fault.HostCommunication, vim.fault.Timedout),
)


def passes(fault: Exception) -> bool:
    """Whether a fault is temporary.

    InvalidState is, but not its subtypes (InvalidPowerState): vCenter may show a VM as off while ESXi still
    cleans up after a shutdown.
    """
    return isinstance(fault, _PASSING) or type(fault) is vim.fault.InvalidState


def fault_name(fault: Exception) -> str:
    """The fault's type name, such as InvalidPowerState."""
    return type(fault).__name__.rpartition(".")[2]


def name_behind(error: VnumaError) -> str:
    """The name of the fault that an error comes from; without one, of the error's own type."""
    cause = error.__cause__
    return fault_name(cause) if isinstance(cause, vmodl.MethodFault) else type(error).__name__


def describe(fault: Exception) -> str:
    """Name, property and message of a fault, in vSphere's text.

    `InvalidArgument (spec.cpuAffinity): A specified parameter was not correct.`
    """
    text = fault_name(fault)
    if isinstance(fault, vmodl.fault.InvalidArgument) and fault.invalidProperty:
        text += f" ({fault.invalidProperty})"
    elif isinstance(fault, vim.fault.InvalidPowerState):
        text += f" (it is {fault.existingState}, needed: {fault.requestedState or 'another state'})"
    words = _message(fault)
    return f"{text}: {words}" if words else text


_LOOK = "Look at the VM's recent tasks and events in vCenter."

# What helps, more specific faults first (vSphere Web Services API reference, fault types).
_HELPS: tuple[tuple[type[Exception], str], ...] = (
    (vim.fault.NoDiskSpace, "Free space on that datastore for the VM's settings, log and swap file."),
    (
        vim.fault.InsufficientFailoverResourcesFault,
        "vSphere HA keeps capacity of the cluster free for failovers (admission control): reserve less in "
        "the arm, power off other VMs of the cluster, or have admission control relaxed during the study.",
    ),
    (vim.fault.InsufficientResourcesFault, "Free memory or CPU on the host, or reserve less in the arm."),
    (vim.fault.MethodDisabled, "A backup or replication holds the VM; wait until it has ended."),
    (
        vim.fault.VmConfigFault,
        "The VM's settings do not fit together on this host: see vnuma plan STUDY and the VM's log.",
    ),
    (vim.fault.FileFault, "Check that the VM's files exist and that no other host holds them."),
    (
        vmodl.fault.InvalidArgument,
        "This release or hardware version does not accept the value: vnuma plan STUDY",
    ),
    (vmodl.fault.NotSupported, "This release or hardware version does not support this: vnuma plan STUDY"),
)


def what_helps(fault: Exception) -> str:
    """What to do about a fault that refused to change a VM or its power."""
    return next((words for kind, words in _HELPS if isinstance(fault, kind)), _LOOK)


def _message(fault: Exception) -> str:
    """The localised message, if it says more than the fault's name."""
    localised = [entry.message for entry in getattr(fault, "faultMessage", None) or [] if entry.message]
    for words in (getattr(fault, "msg", None), *localised):
        if words and words.rstrip(".").rpartition(".")[2] != fault_name(fault):
            return str(words).strip()
    return ""


def expected(
    fault: Exception, address: str, user: str, name_of: Callable[[Any], str], on: object = None
) -> VnumaError | None:
    """The error for a fault with the same meaning everywhere; None for any other.

    `on` is the VM or host that was worked on, if known.
    """
    if isinstance(fault, vim.fault.NotAuthenticated):
        return SessionExpired(
            f"{address} has ended our session.",
            fix="Connect again; if it happens again, raise the idle time-out of vCenter's sessions.",
        )
    if passes(fault):
        whom = f" for {name_of(on)}" if isinstance(on, vim.ManagedEntity) else ""
        return NotNow(
            f"{address} could not do this now{whom} ({describe(fault)}).",
            fix=what_helps(fault)
            if isinstance(fault, vim.fault.MethodDisabled)
            else "Look at the VM's recent tasks and its host's state in vCenter.",
        )
    if isinstance(fault, vim.fault.RestrictedVersion):
        return EnvironmentProblem(
            f"{address} is the free ESXi hypervisor, whose API is read-only.",
            fix="Use a licensed or evaluation ESXi host, or a vCenter.",
        )
    if isinstance(fault, vim.fault.NoPermission):
        return PrivilegeMissing(
            f"{user} lacks the privilege {' and '.join(_privileges(fault))} on {_entity(fault, name_of)}.",
            fix="Ask for a role with it for that account, assigned there.",
        )
    if isinstance(fault, vmodl.fault.ManagedObjectNotFound):
        return VmNotFound(
            f"{address} no longer has the object {getattr(fault.obj, '_moId', 'unknown')}.",
            fix="It was deleted or registered again meanwhile; check vCenter.",
        )
    return None


def _privileges(fault: vim.fault.NoPermission) -> list[str]:
    """The missing privileges: one name in older releases, a list by object since 7.0.3."""
    names = [fault.privilegeId] if fault.privilegeId else []
    names += [
        name for entry in getattr(fault, "missingPrivileges", None) or [] for name in entry.privilegeIds
    ]
    return sorted(set(names)) or ["(not named by vCenter)"]


def _entity(fault: vim.fault.NoPermission, name_of: Callable[[Any], str]) -> str:
    entities = [fault.object] if fault.object else []
    entities += [entry.entity for entry in getattr(fault, "missingPrivileges", None) or []]
    return name_of(entities[0]) if entities else "an object that vCenter does not name"
