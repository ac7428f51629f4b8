"""One pass over a machine: create its files, hold kernel settings, run the workload."""

from __future__ import annotations

from vnuma.engine.cell.measure import measure_turns
from vnuma.engine.cell.site import CellSite
from vnuma.engine.lease.attempt import Attempt, finish, step
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.locking import vm_lock
from vnuma.store.states import Outcome
from vnuma.workloads.find import machine_workload_named
from vnuma.workloads.shell import Shell


def measure_pass(context: VmContext, attempt: Attempt, shell: Shell) -> int:
    """The only step of a machine's cell: settle the attempt and return how many samples were stored.

    Raises what the workload raises; samples measured before that stay stored.
    """
    site = CellSite(context, attempt, shell)
    workload = machine_workload_named(context.study.workload.name)
    with step(context, attempt, "measure"), vm_lock(context.home, context.vm.vm_key, context.vm.name):
        context.fence()
        site.record("dataset", workload.prepare(site))
        stored = measure_turns(site, workload)
    finish(context, attempt, Outcome.VALID, None, None)
    return stored
