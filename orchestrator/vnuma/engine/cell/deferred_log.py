"""Fetch a boot's vmware.log after power-off, where it was not available while the VM ran.

The log of a running VM comes from its host. After power-off vCenter has it too, until the next power-on
rotates it. It is stored with the boot's attempt, which has ended by then; it does not change its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vnuma.domain.topology.evidence import LOG_WORDS, LogEvidence
from vnuma.domain.vm.facts import GuestTopology
from vnuma.engine.cell import evidence
from vnuma.engine.lease.audit import Journal
from vnuma.errors import StoreError
from vnuma.store import attempts, facts
from vnuma.store.open import Store
from vnuma.store.rows import Attempt, Run
from vnuma.vsphere import read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.log_file import LogUnavailable, fetch_log
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.uptime import seconds_since

PENDING = "owed"
"""Fact of an attempt whose log is still missing: the power-on time, and why there is no log."""

LATE = "late"
"""Fact of an attempt whose log was fetched after power-off: why it was not available before."""


@dataclass(frozen=True)
class _Pending:
    attempt: Attempt
    powered_on_at: datetime
    why: str


def pending_facts(powered_on_at: datetime, why: str) -> dict[str, object]:
    """What is recorded with a boot whose log is not available."""
    return {PENDING: {"powered_on_at": powered_on_at.isoformat(), "why": why}}


def collect(journal: Journal, session: Session, ref: VmRef) -> None:
    """Fetch the missing log of the VM's last boot in the journal's run, if any. The VM must be off.

    Tried once; if that fails, both reasons are stored and the log stays not evaluated. A failing store does
    not prevent a VM's restore. Raises VCenterUnreachable.
    """
    if journal.run is None:
        return
    try:
        pending = _pending(journal.store, journal.run, journal.vm_key)
        if pending is not None:
            _fetch(journal.store, pending, session, ref)
    except StoreError as error:
        journal.on_store_error(error)


def _fetch(store: Store, pending: _Pending, session: Session, ref: VmRef) -> None:
    attempt = pending.attempt
    try:
        file = fetch_log(session, read.read_vm(session, ref))
    except LogUnavailable as error:
        found = LogEvidence(why_not=f"{pending.why}; after power-off: {error.what}")
    else:
        age_s, guest = seconds_since(session, pending.powered_on_at), _guest(attempt.effective)
        found = evidence.evaluate(store, attempt.vm_id, attempt.id, file, age_s, guest)
    with store.write() as connection:
        attempts.amend_effective(connection, attempt.id, _amended(attempt.effective, found))
        late = {LATE: pending.why, **evidence.log_facts(found)}
        facts.add_late_facts(connection, attempt.id, evidence.SCOPE, late)


def _pending(store: Store, run: Run, vm_key: str) -> _Pending | None:
    """The attempt of the VM's last boot, if its log is still missing."""
    last = store.ask(lambda connection: facts.last_of_vm(connection, run.id, vm_key, evidence.SCOPE))
    if last is None or last.key != PENDING or last.attempt_id is None:
        return None
    number = last.attempt_id
    attempt = store.ask(lambda connection: attempts.get_attempt(connection, number))
    value: Any = last.value
    return _Pending(attempt, datetime.fromisoformat(value["powered_on_at"]), str(value["why"]))


def _guest(effective: Any) -> GuestTopology:
    """The guest's topology in that boot, to compare the log with."""
    seen = effective["guest"]
    return GuestTopology(seen["vcpus"], None, None, seen["numa_nodes"], seen["sql_cpu_nodes"], None)


def _amended(effective: Any, found: LogEvidence) -> Mapping[str, object]:
    """The boot's effective topology, with the log added."""
    others = [words for words in effective["not_evaluated"] if not words.startswith(LOG_WORDS)]
    unseen = [] if found.why_not is None else [f"{LOG_WORDS} {found.why_not}"]
    return {**effective, "log": evidence.log_document(found), "not_evaluated": [*others, *unseen]}
