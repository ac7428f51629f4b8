"""Plays without a supervising `vnuma run`: launched by hand, or by AWX.

Such a play takes each VM over before its first cell, sends heartbeats while it works, and settles the run's
state after it has restored the last VM. Its process is the workers' parent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from vnuma.engine.access.context import VmContext
from vnuma.engine.lease.supervision import (
    BEAT_S,
    claim_supervision,
    heartbeat,
    refuse_if_alive,
    tolerating_full_store,
)
from vnuma.engine.run import start
from vnuma.engine.run.progress import progress_of
from vnuma.engine.run.run_outcome import state_at_end, state_away
from vnuma.errors import NotAtBaseline, StoreError
from vnuma.store import leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Run, RunState


def take_over_target(context: VmContext) -> VmContext:
    """Take a VM over as a supervisor does; returns its context.

    Raises VmHeld when another process supervises the run, or another run has the VM.
    """
    store, run = context.store, context.run
    claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid()):
        taken = start.take_over_target(context)
    with store.write() as connection:
        runs.set_run_state(connection, run.id, RunState.RUNNING)
    return taken


def refuse_if_supervised(run: Run) -> None:
    """Raise VmHeld when a process other than this play supervises the run."""
    refuse_if_alive(run, os.getppid())


@contextmanager
def supervising(store: Store, run: Run, every_s: float = BEAT_S) -> Iterator[None]:
    """Send this play's heartbeats during a step. Raises VmHeld when another process supervises the run."""
    claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid(), every_s):
        yield


@contextmanager
def restoring(store: Store, run: Run) -> Iterator[None]:
    """The same during a restore, which also works on a full store."""
    with tolerating_full_store():
        claim_supervision(store, run, os.getppid())
    with heartbeat(store, run, os.getppid()):
        yield


def lease_token(context: VmContext) -> int | None:
    """The token with which the run holds this VM now; None when it does not."""
    return context.store.ask(
        lambda connection: leases.token_of(connection, context.vm.vm_key, context.run.id)
    )


def settle(store: Store, run: Run) -> None:
    """Set the run's last state, once every VM is restored."""
    with store.read() as connection:
        progress = progress_of(connection, run.name)
    if not all(vm.at_baseline for vm in progress.vms):
        return
    with store.write() as connection:
        runs.set_run_state(connection, run.id, state_at_end(progress, []))
        runs.clear_supervisor(connection, run)


def settle_away(store: Store, run: Run, why: NotAtBaseline) -> None:
    """Record that a VM could not be restored: the run waits for a person.

    A failure to write is ignored, since `why` is being raised.
    """
    with suppress(StoreError), store.write() as connection:
        runs.set_run_state(connection, run.id, state_away([why]))
