"""VMs that a run left changed or still leased."""

from __future__ import annotations

from sqlalchemy import Connection

from vnuma.store import vms
from vnuma.store.rows import Run, Vm


def unrestored_vms(connection: Connection) -> list[tuple[Vm, Run]]:
    """VMs to restore or release, each with its run; running runs are included, imported ones are not."""
    left = [(item.vm, item.run) for item in vms.vms_not_at_baseline(connection)]
    known = {vm.id for vm, _ in left}
    held = ((item.vm, item.run) for item in vms.vms_leased(connection))
    return left + [(vm, run) for vm, run in held if vm.id not in known]
