"""Find runs whose supervisor died and make them ready to continue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vnuma.engine.lease.supervision import refuse_if_alive
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.store import runs
from vnuma.store.open import Store
from vnuma.store.rows import Run


@dataclass(frozen=True)
class Found:
    """A run whose controller died, and what it was doing then."""

    run: Run
    progress: Progress
    words: str


def reopen(store: Store, name: str, inventory: Path | None = None) -> Found:
    """Make a run ready to continue; unfinished work is settled when its VMs are taken over.

    An `inventory` given replaces the run's, also for the restore. Raises VmHeld when its supervisor lives,
    InputError for an imported run or one that measures nothing.
    """
    with store.read() as connection:
        run = runs.get_run(connection, name)
        runs.refuse_imported(connection, run.id)
        runs.refuse_contract(connection, run)
        progress = progress_of(connection, run.name)
    refuse_if_alive(run)
    words = _what_it_did(progress)
    with store.write() as connection:
        runs.request_stop(connection, run.id, None)
        if inventory:
            runs.set_inventory(connection, run.id, str(inventory.resolve()))
            run = runs.get_run(connection, name)
    return Found(run, progress, words)


def _what_it_did(progress: Progress) -> str:
    """The cells in progress; else those without a result, as a restore has left them."""
    busy = [f"{vm.name}: block {vm.block}, {vm.label}, step {vm.step}" for vm in progress.vms if vm.label]
    ended = [
        f"{vm.name}: block {vm.block}, {label} {outcome.partition(',')[0]}"
        for vm in progress.vms
        for label, outcome in vm.last[:1]
        if outcome != "valid"
    ]
    return "; ".join(busy or ended) or "no cell was under way"
