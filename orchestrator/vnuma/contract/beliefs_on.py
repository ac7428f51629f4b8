"""Beliefs about a VM that was powered on after a change: what is kept, what is refused while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from pyVmomi import vim, vmodl

from vnuma.contract.beliefs_off import Asking, refused
from vnuma.contract.suite import Differs, expect, source
from vnuma.contract.vcenter import API, DEFAULT, KEY, Clone, cpus_for, number, other_cores
from vnuma.domain.vm.setting import Settings, Value
from vnuma.vsphere.faults import fault_name
from vnuma.vsphere.uptime import host_ahead_s, seconds_since_power_on, vcenter_clock
from vnuma.vsphere.wait import wait_for_task

_SPEC = source(f"{API}vim.vm.ConfigSpec.html")
_RUNTIME = source(f"{API}vim.vm.RuntimeInfo.html")
_TASK = source(f"{API}vim.TaskInfo.html")
_ALLOCATION = source(f"{API}vim.ResourceAllocationInfo.html")
_TASK_S = 60.0
"""How long a task that fails may take to end, in seconds."""


@_SPEC
def test_on_key_is_kept(asked: Clone) -> None:
    """A key of extraConfig written while off reads the same after power-on."""
    expect(asked.settings().get(KEY), DEFAULT)


@_RUNTIME
def test_on_boot_time(asked: Clone) -> None:
    """The bootTime is the power-on by the host's clock: less than an hour ago."""
    expect(0 <= seconds_since_power_on(asked.session, asked.ref) + 1 < 3600, True)


@_RUNTIME
def test_on_host_is_shown(asked: Clone) -> None:
    """A VM that is on shows the host that it runs on, and that host lists it."""
    expect(asked.ref._GetMoId() in {one._GetMoId() for one in asked.of_host("vm")}, True)


@source(f"{API}vim.vm.GuestInfo.html")
def test_on_tools_come_up(asked: Clone) -> None:
    """Tools that run are shown as running, with the guest's state."""
    seen = asked.values("guest.toolsRunningStatus", "guest.guestState")
    expect(tuple(sorted(map(str, seen.values()))), ("guestToolsRunning", "running"))


def _refused_power_on(asked: Clone) -> tuple[vim.TaskInfo, str]:
    """The ended task of a power-on of a VM that is on, and the fault that it was refused by."""
    asked.fence()
    task = asked.ref.PowerOnVM_Task()
    seen = "accepted"
    try:
        wait_for_task(asked.session, task, _TASK_S, "the task did not end")
    except vim.fault.InvalidPowerState as fault:
        seen = str(fault.existingState)
    except vmodl.MethodFault as fault:
        seen = fault_name(fault)
    return asked.session.read(task, ("info",)).values["info"], seen


@source(f"{API}vim.fault.InvalidPowerState.html")
def test_on_again_is_refused(asked: Clone) -> None:
    """A power-on while on fails in its task with InvalidPowerState, which names the state."""
    expect(_refused_power_on(asked)[1], "poweredOn")


@_TASK
def test_task_ended(asked: Clone) -> None:
    """A failed task has the state `error`, a fault with its message, and its times by vCenter's clock."""
    second = timedelta(seconds=1)
    earliest = vcenter_clock(asked.session) - second
    info, _ = _refused_power_on(asked)
    if info.startTime is None or info.completeTime is None:
        raise Differs("no times")
    in_order = earliest <= info.startTime <= info.completeTime <= vcenter_clock(asked.session) + second
    expect((str(info.state), bool(getattr(info.error, "msg", None)), in_order), ("error", True, True))


@source(f"{API}vim.host.DateTimeSystem.html")
def test_clock_host_and_vcenter(asked: Clone) -> None:
    """The clocks of host and vCenter differ by less than a day."""
    ahead = host_ahead_s(asked.session, asked.host())
    if ahead is None:
        pytest.skip("the host's clock is not shown")
    expect(abs(ahead) < 86_400, True)


@_SPEC
def test_hot_key_is_stored(asked: Clone) -> None:
    """A key of extraConfig is stored while the VM runs."""
    expect(asked.asked_for(**{KEY: "10"}).get(KEY), "10")


@_ALLOCATION
def test_hot_shares(asked: Clone) -> None:
    """Shares change while the VM runs."""
    expect(asked.asked_for(cpuShares="low")["cpuShares"], "low")


@_ALLOCATION
def test_hot_reservation(asked: Clone) -> None:
    """A small memory reservation changes while the VM runs, unless it is locked."""
    if asked.settings()["memoryReservationLockedToMax"]:
        pytest.skip("locked")
    expect(asked.asked_for(memoryReservation=8)["memoryReservation"], 8)


def _more_memory(settings: Settings) -> Mapping[str, Value]:
    if settings["memoryHotAddEnabled"]:
        pytest.skip("memory hot-add is on")
    return {"memoryMB": number(settings, "memoryMB") + 4}


_STATE = "InvalidPowerState"


@pytest.mark.parametrize(
    ("what", "fault", "asking"),
    [
        refused(
            "cores_is_refused",
            "Other cores per socket",
            _STATE,
            lambda s: {"numCoresPerSocket": other_cores(s)},
        ),
        refused("affinity_is_refused", "CPU affinity", _STATE, lambda s: {"cpuAffinity": cpus_for(s)}),
        refused("memory_is_refused", "More memory, without hot-add,", _STATE, _more_memory),
        refused(
            "memory_hot_add_is_refused",
            "Hot-add of memory",
            _STATE,
            lambda s: {"memoryHotAddEnabled": not s["memoryHotAddEnabled"]},
        ),
    ],
)
def test_hot(asked: Clone, what: str, fault: str, asking: Asking) -> None:
    """{what} while the VM runs is {fault}."""
    expect(asked.refusal(**asking(asked.settings())), fault)
