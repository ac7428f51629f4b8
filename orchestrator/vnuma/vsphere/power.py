"""Shut down through the guest, power on at a given host, wait for the guest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from pyVmomi import vim, vmodl

from vnuma.errors import (
    HostChanged,
    PowerFailed,
    ReconfigureRefused,
    ShutdownTimeout,
    ToolsTimeout,
    VmNotFound,
    WaitTimeout,
)
from vnuma.vsphere.apply import no_fence, submit
from vnuma.vsphere.faults import NotNow, describe, what_helps
from vnuma.vsphere.read import why_no_power_on
from vnuma.vsphere.session import Session
from vnuma.vsphere.uptime import vcenter_clock
from vnuma.vsphere.wait import QUESTION, Values, refuse_question, spell, wait_for, wait_for_task

_POWER = "runtime.powerState"
_TOOLS = "guest.toolsRunningStatus"
_GUEST = "guest.guestState"
_INSTALLED = "guest.toolsVersionStatus2"
_POWER_OFF_TIMEOUT_S = 120.0
_LOOK_S = 5.0
"""How often a wait for a late shutdown tells how much time is left."""

Fence = Callable[[], None]

Ask = Literal["shut_down", "reboot"]
_ASK: Mapping[Ask, Callable[[vim.VirtualMachine], None]] = {
    "shut_down": lambda ref: ref.ShutdownGuest(),
    "reboot": lambda ref: ref.RebootGuest(),
}


def shut_down(
    session: Session,
    ref: vim.VirtualMachine,
    *,
    timeout_s: float,
    on_timeout: Literal["fail", "power_off"] = "fail",
    ask: Ask = "shut_down",
    fence: Fence = no_fence,
) -> None:
    """Shut the guest down; does nothing for a VM that is off.

    With `ask` "reboot" (vSphere 8) the VM is set to turn its next reboot into a power-off, and the guest is
    asked to reboot; the setting is reset if the guest does not. A guest that is still booting is asked once
    its Tools run. If the VM is not off within `timeout_s`, or has no Tools, raises ShutdownTimeout and leaves
    it on, or with `on_timeout` "power_off" powers it off hard. Raises PowerFailed and QuestionPending.
    """
    start = session.read(ref, ("name", "config.guestId", _POWER, _TOOLS, _INSTALLED, QUESTION)).values
    with session.understanding():
        name = start["name"]
    if _is(start, _POWER, "poweredOff"):
        return
    if _is(start, _POWER, "suspended"):
        raise PowerFailed(
            f"{name} is suspended, so its guest cannot be shut down.",
            fix="Resume it, or power it off in vCenter.",
        )
    refuse_question(session, ref, start)
    if ask == "reboot":
        _end_at_reboot(session, ref, True, fence)
    hindrance = _shut_down_guest(session, ref, start, timeout_s, _ASK[ask], fence)
    if hindrance is None:
        return
    if ask == "reboot":
        _end_at_reboot(session, ref, False, fence)
    if on_timeout == "power_off":
        _power_off(session, ref, name, fence)
        return
    raise ShutdownTimeout(
        f"{hindrance}; the VM is still running.",
        fix="Shut it down by hand, or set on_shutdown_timeout: power_off in the study.",
    )


def _end_at_reboot(session: Session, ref: vim.VirtualMachine, on: bool, fence: Fence) -> None:
    """Set whether the VM's next reboot powers it off. Raises ReconfigureRefused."""
    if not session.knows(vim.vm.ConfigSpec, "rebootPowerOff"):
        raise ReconfigureRefused(
            f"{session.about.name} (API {session.about.api_version}) cannot end a reboot in power-off.",
            fix="Set guest_is_asked_to: shut_down in the study.",
        )
    submit(session, ref, vim.vm.ConfigSpec(rebootPowerOff=on), fence=fence)


def _shut_down_guest(
    session: Session,
    ref: vim.VirtualMachine,
    start: Values,
    timeout_s: float,
    request: Callable[[vim.VirtualMachine], None],
    fence: Fence,
) -> str | None:
    """None once the VM is off; else what prevented it."""
    name = start["name"]
    guest = "Windows" if "win" in start.get("config.guestId", "").lower() else "The guest"
    if _is(start, _INSTALLED, "guestToolsNotInstalled"):
        return f"VMware Tools are not installed in {name}, so {guest} cannot be asked to shut down"
    deadline = time.monotonic() + timeout_s
    try:
        seen = start
        if not _off_or_tools(start):
            paths = (_POWER, _TOOLS)
            seen = wait_for(session, ref, paths, _off_or_tools, timeout_s, f"{name}: no Tools", vm=ref)
    except WaitTimeout as error:
        return (
            f"VMware Tools did not run in {name} within {spell(timeout_s)}, "
            f"so {guest} could not be asked to shut down ({_stage(error.seen)})"
        )
    if _off(seen):
        return None
    fence()
    refusal = _ask_guest(ref, request)
    if refusal:
        return f"{guest} in {name} could not be asked to shut down ({refusal})"
    try:
        left_s = deadline - time.monotonic()
        wait_for(session, ref, (_POWER, _TOOLS, _GUEST), _off, left_s, f"{name}: still on", vm=ref)
    except WaitTimeout as error:
        return f"{guest} in {name} did not shut down in {spell(timeout_s)} ({_stage(error.seen)})"
    return None


def _ask_guest(ref: vim.VirtualMachine, request: Callable[[vim.VirtualMachine], None]) -> str | None:
    """Ask the guest; returns None if it accepted or the VM is off by now, else why not."""
    try:
        request(ref)
    except vim.fault.InvalidPowerState as fault:
        return None if str(fault.existingState) == "poweredOff" else describe(fault)
    except vmodl.MethodFault as fault:
        return describe(fault)
    return None


def _power_off(session: Session, ref: vim.VirtualMachine, name: str, fence: Fence) -> None:
    """Power off hard; a VM that went off meanwhile is fine."""
    fence()
    try:
        wait_for_task(
            session, ref.PowerOffVM_Task(), _POWER_OFF_TIMEOUT_S, f"vSphere did not power off {name}"
        )
    except vim.fault.InvalidPowerState as fault:
        if str(fault.existingState) != "poweredOff":
            raise _refused(f"off {name}", fault) from fault
    except vmodl.MethodFault as fault:
        raise _refused(f"off {name}", fault) from fault


def _refused(what: str, fault: vmodl.MethodFault) -> PowerFailed:
    return PowerFailed(f"vSphere could not power {what}: {describe(fault)}", fix=what_helps(fault))


def is_shutting_down(session: Session, ref: vim.VirtualMachine) -> bool:
    """Whether a VM is on and its guest is no longer fully running; late in a shutdown it has no Tools."""
    values = session.read(ref, (_POWER, _GUEST)).values
    return not _off(values) and not _is(values, _GUEST, "running")


def await_shutdown(
    session: Session, ref: vim.VirtualMachine, timeout_s: float, tell: Callable[[float], None]
) -> None:
    """Wait for a shutdown that was requested before. Raises ShutdownTimeout, QuestionPending.

    `tell` gets the seconds left, every few seconds, and may raise to end the wait.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = max(deadline - time.monotonic(), 0.0)
        tell(left_s)
        try:
            wait_for(session, ref, (_POWER, _TOOLS, _GUEST), _off, min(left_s, _LOOK_S), "still on", vm=ref)
        except WaitTimeout as error:
            if time.monotonic() >= deadline:
                raise _still_on(session, ref, timeout_s, error) from error
        else:
            return


def _still_on(
    session: Session, ref: vim.VirtualMachine, timeout_s: float, last: WaitTimeout
) -> ShutdownTimeout:
    name = session.transport.name_of(ref)
    return ShutdownTimeout(
        f"The guest of {name} was asked to shut down and is not off yet, {spell(timeout_s)} later "
        f"({_stage(last.seen)}). {name} will go off, and stay off until it is restored.",
        fix=f"When {name} is off: vnuma restore {name}",
    )


def power_on(
    session: Session,
    ref: vim.VirtualMachine,
    *,
    host_moid: str | None,
    fence: Fence = no_fence,
    timeout_s: float = 120.0,
) -> datetime:
    """Power on at a host, or (None) where vSphere chooses; returns the time by vCenter's clock.

    Raises PowerFailed (with vSphere's text), QuestionPending, and HostChanged when DRS or HA placed the VM
    elsewhere: an affinity list is valid on one host only.
    """
    name = session.transport.name_of(ref)
    # A standalone host is the only choice, and ESXi takes no host argument.
    host = session.host(host_moid) if host_moid and session.about.is_vcenter else None
    fence()
    try:
        task = ref.PowerOnVM_Task(host=host)
        wait_for_task(session, task, timeout_s, f"{name} was not powered on", vm=ref)
    except WaitTimeout as error:
        state = error.seen.get("info.state", "of unknown state")
        raise PowerFailed(
            f"vSphere did not power on {name} in {spell(timeout_s)} (its task is {state}).",
            fix="Check the VM's recent tasks in vCenter; power.task_timeout_s sets the deadline.",
        ) from error
    except vmodl.MethodFault as fault:
        raise _refused(f"on {name}", fault) from fault
    except NotNow as error:
        if isinstance(error.__cause__, vim.fault.InvalidState) and (why := why_no_power_on(session, ref)):
            raise PowerFailed(f"vSphere could not power on {name}: {why}", fix=error.fix) from error
        raise
    at = _completed(session, task)
    if host_moid:
        _refuse_other_host(session, ref, name, host_moid)
    return at


def _completed(session: Session, task: vim.Task) -> datetime:
    """A task's `completeTime`; the present time if vCenter has forgotten the task."""
    try:
        at = session.read(task, ("info.completeTime",)).values.get("info.completeTime")
    except VmNotFound:
        at = None
    return at if isinstance(at, datetime) else vcenter_clock(session)


def _refuse_other_host(session: Session, ref: vim.VirtualMachine, name: str, host_moid: str) -> None:
    here = session.read(ref, ("runtime.host",)).values.get("runtime.host")
    if here is None or here._GetMoId() == host_moid:
        return
    there = session.transport.name_of(session.host(host_moid))
    raise HostChanged(
        f"{name} runs on {session.transport.name_of(here)}, not on {there} as the run began.",
        fix="Keep it there: a DRS override (disabled) for this VM, or a host outside DRS.",
    )


def wait_for_guest(session: Session, ref: vim.VirtualMachine, *, timeout_s: float) -> None:
    """Wait until the VM's Tools run and its guest reports itself running.

    Raises QuestionPending and ToolsTimeout, at once if the VM goes off meanwhile.
    """
    paths = (_POWER, _TOOLS, _GUEST)
    try:
        seen = wait_for(session, ref, paths, _up_or_off, timeout_s, "no Tools", vm=ref)
    except WaitTimeout as error:
        name = session.transport.name_of(ref)
        raise ToolsTimeout(
            f"VMware Tools did not come up in {name} in {spell(timeout_s)} ({_stage(error.seen)}).",
            fix="Check the VM's console in vCenter; power.tools_timeout_s sets the deadline.",
        ) from error
    if _off(seen):
        name = session.transport.name_of(ref)
        raise ToolsTimeout(f"{name} powered off during its boot.", fix="Check its events in vCenter.")


def _is(values: Values, path: str, state: str) -> bool:
    return str(values.get(path)) == state


def _off(values: Values) -> bool:
    return _is(values, _POWER, "poweredOff")


def _off_or_tools(values: Values) -> bool:
    return _off(values) or _is(values, _TOOLS, "guestToolsRunning")


def _up_or_off(values: Values) -> bool:
    up = _is(values, _TOOLS, "guestToolsRunning") and _is(values, _GUEST, "running")
    return up or _off(values)


def _stage(values: Values) -> str:
    """A VM's boot progress, for messages: `Tools run, the guest is shuttingDown`."""
    if _off(values):
        return "it is off"
    tools = "Tools run" if _is(values, _TOOLS, "guestToolsRunning") else "Tools do not run"
    guest = values.get(_GUEST)
    return f"it is on, {tools}" + (f", the guest is {guest}" if guest else "")
