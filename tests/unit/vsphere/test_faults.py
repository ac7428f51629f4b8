"""vSphere's faults in words."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from vnuma.errors import EnvironmentProblem, PrivilegeMissing, VmNotFound
from vnuma.vsphere.faults import NotNow, SessionExpired, describe, expected, passes, what_helps

VM = vim.VirtualMachine("vm-57")


def name_of(_: Any) -> str:
    """A name for every object."""
    return "sql16"


def in_words(fault: Exception) -> str:
    """The whole text of the error that a fault becomes."""
    return str(expected(fault, "vcsa01:443", "study@corp", name_of))


DETAIL = vmodl.LocalizableMessage(key="k", message="Another task is running.")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            vmodl.fault.InvalidArgument(invalidProperty="spec.cpuAffinity", msg="Not correct."),
            "InvalidArgument (spec.cpuAffinity): Not correct.",
        ),
        (
            vim.fault.InvalidPowerState(existingState="poweredOn", requestedState="poweredOff"),
            "InvalidPowerState (it is poweredOn, needed: poweredOff)",
        ),
        *(
            (vim.fault.TaskInProgress(msg=msg), "TaskInProgress")
            for msg in (None, "", "vim.fault.TaskInProgress")
        ),
        (vim.fault.TaskInProgress(faultMessage=[DETAIL]), "TaskInProgress: Another task is running."),
    ],
    ids=["property", "power state", "no message", "empty", "the name alone", "a detail"],
)
def test_a_fault_is_described_with_what_it_says_of_itself(fault: Exception, words: str) -> None:
    """Property or states, then vSphere's message; its first detail where that is empty or only the name."""
    assert describe(fault) == words


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (vim.fault.NoDiskSpace(), "Free space on that datastore"),
        (vim.fault.InsufficientMemoryResourcesFault(), "reserve less in the arm"),
        (vim.fault.GenericVmConfigFault(), "do not fit together on this host"),
        (vim.fault.FileLocked(), "no other host holds them"),
        (vim.fault.MethodDisabled(), "A backup or replication holds the VM"),
        (vmodl.fault.InvalidArgument(), "does not accept the value"),
        (vmodl.fault.SystemError(), "recent tasks and events in vCenter"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_refusal_says_what_helps(fault: Exception, words: str) -> None:
    """By its kind; for one that nobody expected, where to look."""
    assert words in what_helps(fault)


def test_a_missing_privilege_names_privilege_and_object() -> None:
    """The older form of NoPermission names one privilege and its object."""
    fault = vim.fault.NoPermission(object=VM, privilegeId="VirtualMachine.Config.CPUCount")
    assert isinstance(expected(fault, "vcsa01:443", "study@corp", name_of), PrivilegeMissing)
    assert in_words(fault).startswith(
        "study@corp lacks the privilege VirtualMachine.Config.CPUCount on sql16.\n"
    )


def test_the_newer_form_of_missing_privileges_is_read() -> None:
    """Since 7.0.3 NoPermission lists privileges by object; all of them are named."""
    missing = vim.fault.NoPermission.EntityPrivileges(entity=VM, privilegeIds=["B.b", "A.a"])
    assert "lacks the privilege A.a and B.b on sql16." in in_words(
        vim.fault.NoPermission(missingPrivileges=[missing])
    )


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (vim.fault.RestrictedVersion(), EnvironmentProblem),  # the free hypervisor
        (vim.fault.NotAuthenticated(), SessionExpired),
        (vmodl.fault.ManagedObjectNotFound(obj=VM), VmNotFound),
        (vim.fault.TaskInProgress(), NotNow),
        (vmodl.fault.HostNotReachable(), NotNow),
        (vim.fault.ToolsUnavailable(), type(None)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_fault_has_its_kind_of_error(fault: Exception, kind: type) -> None:
    """One that means different things in different places is left to the caller."""
    assert type(expected(fault, "vcsa01:443", "study@corp", name_of)) is kind


@pytest.mark.parametrize(
    ("fault", "temporary"),
    [
        (vim.fault.TaskInProgress(), True),
        (vim.fault.InvalidState(), True),
        (vim.fault.InvalidPowerState(), False),
        (vim.fault.NoDiskSpace(), False),
    ],
)
def test_a_state_that_passes_is_no_power_state(fault: Exception, temporary: bool) -> None:
    """ESXi still cleans up after a shutdown; a VM that is on does not go off by waiting."""
    assert passes(fault) is temporary
