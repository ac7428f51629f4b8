"""A cell's work in the store, done once and undone, by the process that forks a worker for each of its steps.

SQLAlchemy compiles a statement at its first use, a tenth of a worker's time; a fork inherits the result.
"""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection

from vnuma.errors import VnumaError
from vnuma.store import attempts, audit, cells, facts, leases, runs, samples
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.rows import Claim, Outcome, Run, Sample, Vm
from vnuma.store.tables import utc_now

_WORDS = "rehearsal"
_MOST = 1


class _Undone(Exception):
    """Rolls back the transaction."""


def rehearse(store: Store, run: Run, vm: Vm, token: int, *, exclusive_host: bool) -> None:
    """Claim a cell, record an attempt at it, and roll back. Keeps and raises nothing.

    Does only what it can for a VM that the run no longer holds or that has no cell to claim now.
    """
    with suppress(_Undone, VnumaError), store.write() as conn:
        _questions(conn, run, vm, token)
        cells.interrupt_attempts(conn, vm.id, token)
        claimed = cells.claim_next(conn, vm.id, token, _MOST, exclusive_host=exclusive_host)
        if isinstance(claimed, Claim):
            _attempt(conn, run, vm, claimed)
        raise _Undone


def _questions(conn: Connection, run: Run, vm: Vm, token: int) -> None:
    leases.require_current(conn, vm.vm_key, token)
    runs.get_run(conn, run.name)
    cells.limits_of(conn, vm, _MOST)
    attempts.lines_of_run(conn, run.id, vm.id)
    attempts.changes_of_vm(conn, vm.id)
    facts.last_of_vm(conn, run.id, vm.vm_key, _WORDS)
    facts.last_scope(conn, vm.id, (_WORDS,))
    facts.last_value(conn, vm.id, _WORDS, _WORDS, not_of=0)
    facts.facts_of_run(conn, run.id, _WORDS)


def _attempt(conn: Connection, run: Run, vm: Vm, claim: Claim) -> None:
    """Record each of its steps, with one fact and with several at once."""
    own, now = (conn, claim.id, claim.token), utc_now()
    one, several = {_WORDS: None}, {_WORDS: None, f"{_WORDS} 2": None}
    attempts.set_step(*own, _WORDS)
    cells.mark_changing(conn, vm.id, claim.token)
    attempts.save_plan(*own, intended=one, change=[], predicted=one)
    line = AuditLine(now, _WORDS, vm.name, vm.vm_key, run.name, None, _WORDS, [], None, "noted", _WORDS)
    audit.add_line(conn, line, run.id)
    facts.add_attempt_facts(*own, {_WORDS: one})
    attempts.save_effective(*own, one, {_WORDS: several})
    samples.add_samples(*own, [Sample(_WORDS, 1, _WORDS, 1, warmup=True, at=now, reason=_WORDS)])
    attempts.finish(*own, Outcome.VALID)
