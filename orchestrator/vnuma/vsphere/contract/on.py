"""Beliefs about a VM that was powered on after a change: what is kept, what is refused while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from pyVmomi import vim, vmodl

from vnuma.domain.contract.belief import DiffersError, NotEvaluableError, expect
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Settings, Value
from vnuma.vsphere.contract.asked import API, WHILE_ON, ChangedVm, cpus_for, number
from vnuma.vsphere.contract.off import CONFIG_SPEC, DEFAULT, KEY, key_spec, other_cores, refused
from vnuma.vsphere.faults import fault_name
from vnuma.vsphere.uptime import host_ahead_s, seconds_since_power_on, vcenter_clock
from vnuma.vsphere.wait import wait_for_task

_TASK = f"{API}vim.TaskInfo.html"
_TASK_S = 60.0
"""How long a task that fails may take to end, in seconds."""


@WHILE_ON.declare("on.key_is_kept", CONFIG_SPEC)
def _key(asked: ChangedVm) -> str:
    """A key of extraConfig written while off reads the same after power-on."""
    return expect(asked.settings().get(KEY), DEFAULT)


@WHILE_ON.declare("on.cores_are_kept", CONFIG_SPEC)
def _cores(asked: ChangedVm) -> str:
    """Cores per socket still divide the vCPUs after the power-on."""
    settings = asked.settings()
    return expect(number(settings, "numCPUs") % number(settings, "numCoresPerSocket"), 0)


@WHILE_ON.declare("on.boot_time", f"{API}vim.vm.RuntimeInfo.html")
def _boot_time(asked: ChangedVm) -> str:
    """The bootTime is the power-on by the host's clock: less than an hour ago."""
    return expect(0 <= seconds_since_power_on(asked.session, asked.ref) + 1 < 3600, True)


@WHILE_ON.declare("on.host_is_shown", f"{API}vim.vm.RuntimeInfo.html")
def _host(asked: ChangedVm) -> str:
    """A VM that is on shows the host that it runs on, and that host lists it."""
    listed = asked.of_host("vm")
    return expect(asked.ref._GetMoId() in {one._GetMoId() for one in listed}, True)


@WHILE_ON.declare("on.tools_come_up", f"{API}vim.vm.GuestInfo.html")
def _tools(asked: ChangedVm) -> str:
    """Tools that run are shown as running, with the guest's state."""
    seen = asked.values("guest.toolsRunningStatus", "guest.guestState")
    return expect(tuple(sorted(map(str, seen.values()))), ("guestToolsRunning", "running"))


@WHILE_ON.declare("on.again_is_refused", f"{API}vim.fault.InvalidPowerState.html")
def _power_on_while_on(asked: ChangedVm) -> str:
    """A power-on while on fails in its task with InvalidPowerState, which names the state."""
    asked.writer.fence()
    task = asked.ref.PowerOnVM_Task()
    try:
        wait_for_task(asked.session, task, _TASK_S, "the task did not end")
    except vim.fault.InvalidPowerState as fault:
        return expect(str(fault.existingState), "poweredOn")
    except vmodl.MethodFault as fault:
        return expect(fault_name(fault), "InvalidPowerState")
    return expect("accepted", "InvalidPowerState")


@WHILE_ON.declare("task.has_its_times", _TASK)
def _task_times(asked: ChangedVm) -> str:
    """An ended task has startTime and completeTime, by vCenter's clock."""
    second = timedelta(seconds=1)
    earliest = vcenter_clock(asked.session) - second
    info = _ended_task(asked)
    latest = vcenter_clock(asked.session) + second
    if info.startTime is None or info.completeTime is None:
        raise DiffersError("no times")
    return expect(earliest <= info.startTime <= info.completeTime <= latest, True)


@WHILE_ON.declare("task.names_what_it_worked_on", _TASK)
def _task_entity(asked: ChangedVm) -> str:
    """A task names the VM that it worked on."""
    entity = _ended_task(asked).entity
    return expect(entity is not None and entity._GetMoId() == asked.ref._GetMoId(), True)


@WHILE_ON.declare("task.error_has_words", _TASK)
def _task_error(asked: ChangedVm) -> str:
    """A failed task is in the state `error` and has the fault with its message."""
    info = _ended_task(asked)
    return expect((str(info.state), bool(getattr(info.error, "msg", None))), ("error", True))


def _ended_task(asked: ChangedVm) -> vim.TaskInfo:
    """The task of a failed power-on of a VM that is on."""
    asked.writer.fence()
    task = asked.ref.PowerOnVM_Task()
    with suppress(vmodl.MethodFault):
        wait_for_task(asked.session, task, _TASK_S, "the task did not end")
    found: vim.TaskInfo = asked.session.read(task, ("info",)).values["info"]
    return found


@WHILE_ON.declare("clock.host_and_vcenter", f"{API}vim.host.DateTimeSystem.html")
def _clocks(asked: ChangedVm) -> str:
    """The clocks of host and vCenter differ by less than a day."""
    ahead = host_ahead_s(asked.session, asked.host())
    if ahead is None:
        raise NotEvaluableError("the host's clock is not shown")
    return expect(abs(ahead) < 86_400, True)


@WHILE_ON.declare("hot.key_is_stored", CONFIG_SPEC)
def _hot_key(asked: ChangedVm) -> str:
    """A key of extraConfig is stored while the VM runs."""
    before = asked.settings().get(KEY)
    seen = asked.refusal_of([Edit(KEY, before, "10")], key_spec(KEY, "10"))
    return expect((seen, asked.settings().get(KEY)), ("accepted", "10"))


@WHILE_ON.declare("hot.shares", f"{API}vim.ResourceAllocationInfo.html")
def _hot_shares(asked: ChangedVm) -> str:
    """Shares change while the VM runs."""
    return expect(asked.asked_for(cpuShares="low")["cpuShares"], "low")


@WHILE_ON.declare("hot.reservation", f"{API}vim.ResourceAllocationInfo.html")
def _hot_reservation(asked: ChangedVm) -> str:
    """A small memory reservation changes while the VM runs, unless it is locked."""
    if asked.settings()["memoryReservationLockedToMax"]:
        raise NotEvaluableError("locked")
    return expect(asked.asked_for(memoryReservation=8)["memoryReservation"], 8)


def _without_hot_add(settings: Settings) -> Mapping[str, Value]:
    if settings["memoryHotAddEnabled"]:
        raise NotEvaluableError("memory hot-add is on")
    return {"memoryMB": number(settings, "memoryMB") + 4}


_STATE = "InvalidPowerState"
for _id, _says, _asking in (
    ("cores", "Other cores per socket while the VM runs", lambda s: {"numCoresPerSocket": other_cores(s)}),
    (
        "affinity",
        "CPU affinity while the VM runs",
        lambda s: {"cpuAffinity": cpus_for(s)},
    ),
    ("memory", "More memory while the VM runs, without hot-add,", _without_hot_add),
    (
        "cpu_hot_add",
        "Hot-add of CPUs while the VM runs",
        lambda s: {"cpuHotAddEnabled": not s["cpuHotAddEnabled"]},
    ),
    (
        "memory_hot_add",
        "Hot-add of memory while the VM runs",
        lambda s: {"memoryHotAddEnabled": not s["memoryHotAddEnabled"]},
    ),
):
    WHILE_ON.add(refused(f"hot.{_id}_is_refused", _says, _STATE, _asking))
