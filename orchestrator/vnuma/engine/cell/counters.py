"""vSphere's counters of one boot, read once after measuring: contention is shown, never corrected for."""

from __future__ import annotations

from dataclasses import asdict

from vnuma.engine.lease.attempt import Attempt
from vnuma.engine.lease.context import VmContext
from vnuma.store import facts
from vnuma.vsphere import counters
from vnuma.vsphere.counters import Series
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session

SCOPE = "counters"
_IDS = "counter_ids"
"""Facts that cache this vCenter's counter ids: its list is long, so a run reads it once."""


def record(context: VmContext, attempt: Attempt, session: Session, ref: VmRef, seconds: float) -> None:
    """Store what VM and host counted in the last `seconds`, or why there are no values."""
    found = counters.read_counters(session, ref, _ids(context, session), seconds)
    with context.store.write() as write:
        facts.add_attempt_facts(
            write, attempt.id, context.token, SCOPE, {of: _document(value) for of, value in found.items()}
        )


def _ids(context: VmContext, session: Session) -> dict[str, int]:
    with context.store.read() as connection:
        known = facts.facts_of_run(connection, context.run.id, _IDS)
    mine = [fact.value for fact in known if fact.vm_id == context.vm.id]
    if mine and isinstance(mine[-1], dict):
        return {str(name): int(number) for name, number in mine[-1].items()}
    ids = counters.counter_ids(session)
    with context.store.write() as write:
        facts.add_vm_facts(write, context.vm.id, _IDS, {"ids": ids})
    return ids


def _document(found: dict[str, Series] | str) -> dict[str, object]:
    if isinstance(found, str):
        return {"not_evaluated": found}
    return {name: asdict(series) for name, series in found.items()}
