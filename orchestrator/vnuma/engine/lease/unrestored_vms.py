"""VMs that a run left: away from their baseline, or still leased."""

from __future__ import annotations

from sqlalchemy import Connection

from vnuma.store import leases, runs, vms
from vnuma.store.rows import Run, Vm


def unrestored_vms(connection: Connection) -> list[tuple[Vm, Run]]:
    """VMs to be put back or let go, each with its run: of living runs too, of imported runs never."""
    left = [(item.vm, item.run) for item in vms.vms_not_at_baseline(connection)]
    known = {vm.id for vm, _ in left}
    imported = set(connection.scalars(runs.imported_ids()))
    for run in runs.list_runs(connection):
        if run.id in imported:
            continue
        for vm in vms.vms_of_run(connection, run.id):
            lease = leases.get_lease(connection, vm.vm_key)
            if vm.id not in known and lease and lease.run_id == run.id:
                left.append((vm, run))
    return left
