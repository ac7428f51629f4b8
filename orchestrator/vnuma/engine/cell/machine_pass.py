"""One pass over a machine: its files made, kernel settings held, then what the workload does."""

from __future__ import annotations

from vnuma.engine.cell.measure import measure_turn, turn_words, turns
from vnuma.engine.cell.site import CellSite
from vnuma.engine.lease.attempt import Attempt, finish, step
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.locking import vm_lock
from vnuma.store.states import Outcome
from vnuma.workloads.find import machine_workload_named
from vnuma.workloads.shell import Shell


def measure_pass(context: VmContext, attempt: Attempt, shell: Shell) -> int:
    """The only step of a machine's cell: settles the attempt and returns how many samples were stored.

    Raises what the workload raises; what was measured up to then stays in the store with the attempt.
    """
    study, site, stored = context.study, CellSite(context, attempt, shell), 0
    workload = machine_workload_named(study.workload.name)
    with (
        step(context, attempt, "measure"),
        vm_lock(context.home, context.vm.vm_key, context.vm.name),
    ):
        context.fence()
        site.record("dataset", workload.prepare(site))
        with workload.bench(site) as bench:
            for turn in turns(study):
                site.stop_if_asked()
                site.say(turn_words(study, turn))
                measure_turn(context, attempt, bench, turn)
                stored += 1
    finish(context, attempt, Outcome.VALID, None, None)
    return stored
