"""How long ago a VM was powered on, by vCenter's own clock."""

from __future__ import annotations

from pyVmomi import vim

from vnuma.errors import PowerFailed
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session


def seconds_since_power_on(session: Session, ref: VmRef) -> float:
    """Seconds between `runtime.bootTime` and now, both as vCenter reads its clock.

    Raises PowerFailed for a VM that is not powered on.
    """
    booted = session.read(ref, ("runtime.bootTime",)).values.get("runtime.bootTime")
    if booted is None:
        raise PowerFailed(f"{session.transport.name_of(ref)} is not powered on.", fix="Power it on first.")
    now = vim.ServiceInstance("ServiceInstance", session.transport).CurrentTime()
    return float((now - booted).total_seconds())
