"""Which VMs runs have left: away from their baseline, or still leased. One answer for all who ask."""

from __future__ import annotations

from sqlalchemy import Connection

from vnuma.store import leases, runs, vms
from vnuma.store.rows import Run, Vm


def left_vms(connection: Connection) -> list[tuple[Vm, Run]]:
    """VMs that have to be put back or let go, each with its run; a living run's VMs are among them."""
    left = [(item.vm, item.run) for item in vms.vms_not_at_baseline(connection)]
    known = {vm.id for vm, _ in left}
    for run in runs.list_runs(connection):
        for vm in vms.vms_of_run(connection, run.id):
            lease = leases.get_lease(connection, vm.vm_key)
            if vm.id not in known and lease and lease.run_id == run.id:
                left.append((vm, run))
    return left
