"""When a VM was powered on, and how long ago, without comparing two clocks.

`runtime.bootTime` uses the host's clock; `CurrentTime` and task times use vCenter's. They may differ by
minutes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pyVmomi import vim

from vnuma.domain.vm.endpoint import VmSide, plain
from vnuma.errors import PowerFailed, PrivilegeMissing
from vnuma.vsphere.session import Session, VmRef

RUNNING_PATHS = ("runtime.bootTime", "runtime.host", "guest.net", "guest.ipAddress")
CLOCK_PATH = "configManager.dateTimeSystem"
"""The host property that reads its clock."""


def boot_time(session: Session, ref: VmRef) -> datetime:
    """`runtime.bootTime`, by the host's clock: constant while the VM stays on. Raises PowerFailed."""
    return _booted(session, ref, session.read(ref, RUNNING_PATHS[:1]).values)


def powered_on_at(session: Session, ref: VmRef) -> datetime:
    """When the VM was powered on, by vCenter's clock. Raises PowerFailed for one that is off."""
    values = session.read(ref, RUNNING_PATHS[:2]).values
    ahead = timedelta(seconds=host_ahead_s(session, values.get("runtime.host")) or 0.0)
    return _booted(session, ref, values) - ahead


def read_vm_side(session: Session, ref: VmRef) -> VmSide:
    """The guest's addresses and how long the VM has been on. Raises PowerFailed for one that is off."""
    values = session.read(ref, RUNNING_PATHS).values
    return vm_side_of(session, values, _booted(session, ref, values), _clock_system(session, values))


def vm_side_of(
    session: Session, values: Mapping[str, Any], booted: datetime, system: vim.host.DateTimeSystem | None
) -> VmSide:
    """The same from values read with RUNNING_PATHS, and from what reads the host's clock."""
    clock = _host_time(system)
    age_s = seconds_since(session, booted) if clock is None else (clock - booted).total_seconds()
    addresses = guest_addresses(values.get("guest.net"), values.get("guest.ipAddress"))
    return VmSide(addresses, age_s, time.monotonic())


def guest_addresses(cards: Sequence[vim.vm.GuestInfo.NicInfo] | None, first: str | None) -> frozenset[str]:
    """All guest addresses that Tools report: `guest.net` and `guest.ipAddress`."""
    found = [first] if first else []
    for card in cards or ():
        found += [entry.ipAddress for entry in (card.ipConfig.ipAddress if card.ipConfig else ())]
        found += card.ipAddress or ()
    return frozenset(plain(address) for address in found)


def host_ahead_s(session: Session, host: vim.HostSystem | None) -> float | None:
    """Seconds by which a host's clock is ahead of vCenter's; None if it is not readable."""
    clock = _host_time(_clock_system(session, {"runtime.host": host}))
    return None if clock is None else -seconds_since(session, clock)


def seconds_since(session: Session, moment: datetime) -> float:
    """Seconds from a time of vCenter's clock to now, by the same clock."""
    return float((vcenter_clock(session) - moment).total_seconds())


def vcenter_clock(session: Session) -> datetime:
    """vCenter's present time; for a standalone ESXi host its own."""
    now: datetime = vim.ServiceInstance("ServiceInstance", session.transport).CurrentTime()
    return now


def seconds_since_power_on(session: Session, ref: VmRef) -> float:
    """How long a VM has been on, by its host's clock alone. Raises PowerFailed for one that is off."""
    return read_vm_side(session, ref).age_s


def _booted(session: Session, ref: VmRef, values: Mapping[str, Any]) -> datetime:
    booted = values.get("runtime.bootTime")
    if not isinstance(booted, datetime):
        raise PowerFailed(f"{session.transport.name_of(ref)} is not powered on.", fix="Power it on first.")
    return booted


def _clock_system(session: Session, values: Mapping[str, Any]) -> vim.host.DateTimeSystem | None:
    """What reads the clock of a VM's host; None where the account may not see it."""
    host = values.get("runtime.host")
    if host is None:
        return None
    try:
        return session.read(host, (CLOCK_PATH,)).values.get(CLOCK_PATH)
    except PrivilegeMissing:
        return None


def _host_time(system: vim.host.DateTimeSystem | None) -> datetime | None:
    """A host's own time (QueryDateTime, privilege System.Read); None if it is not readable."""
    if system is None:
        return None
    try:
        now: datetime = system.QueryDateTime()
    except PrivilegeMissing:
        return None
    return now
