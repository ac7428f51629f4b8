"""Asking a run to stop, from another process."""

from __future__ import annotations

from vnuma.engine.access.places import store_url
from vnuma.engine.lease.supervision import is_worked_on
from vnuma.store import runs
from vnuma.store.open import open_store
from vnuma.store.states import StopRequest


def ask_to_stop(name: str, *, after_cell: bool, url: str | None = None) -> str:
    """Store the request, on which the run's own process acts. Returns what will happen."""
    store = open_store(store_url(url), create=False)
    with store.write() as connection:
        run = runs.lock_run(connection, runs.get_run(connection, name))
        if run.state.ended:
            return f"{run.name} has ended already ({run.state})."
        asked = StopRequest.CELL if after_cell else StopRequest.NOW
        sooner = run.stop_requested is StopRequest.NOW  # a later request does not revoke an earlier one
        runs.request_stop(connection, run.id, StopRequest.NOW if sooner else asked)
        heard = is_worked_on(connection, run)
    when = "after this cell" if after_cell and not sooner else "after this iteration"
    if heard:
        return f"{run.name} stops {when}, then restores its VMs. Check: vnuma status"
    return f"{run.name} has no running process. Restore its VMs: vnuma restore --run {run.name}"
