"""When a VM was powered on, and how long ago that is, by vCenter's own clock."""

from __future__ import annotations

from datetime import datetime

from pyVmomi import vim

from vnuma.errors import PowerFailed
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session


def powered_on_at(session: Session, ref: VmRef) -> datetime:
    """`runtime.bootTime`, by vCenter's clock. Raises PowerFailed for a VM that is not powered on."""
    booted = session.read(ref, ("runtime.bootTime",)).values.get("runtime.bootTime")
    if not isinstance(booted, datetime):
        raise PowerFailed(f"{session.transport.name_of(ref)} is not powered on.", fix="Power it on first.")
    return booted


def seconds_since(session: Session, moment: datetime) -> float:
    """Seconds between a moment of vCenter's clock and now, as vCenter reads it."""
    now = vim.ServiceInstance("ServiceInstance", session.transport).CurrentTime()
    return float((now - moment).total_seconds())


def seconds_since_power_on(session: Session, ref: VmRef) -> float:
    """Seconds between `runtime.bootTime` and now. Raises PowerFailed for a VM that is not powered on."""
    return seconds_since(session, powered_on_at(session, ref))
