"""What a play's parent process does once, so that its workers need not.

Ansible forks a worker for each task, and what one worker has learnt dies with it. A worker inherits what
its parent knew: the open store, the parsed study, the statements that SQLAlchemy has compiled, and the
types that pyVmomi has built, the ODBC driver.
"""

from __future__ import annotations

from sqlalchemy import Connection

from vnuma.engine.access.connections import driver
from vnuma.engine.access.secrets import Private
from vnuma.engine.lease.context import keep_store, open_run, vm_of_run
from vnuma.engine.run.claim import claim_within, next_cell, why_no_more
from vnuma.errors import VnumaError
from vnuma.store import attempts, audit, facts, leases, samples
from vnuma.store.audit import AuditLine
from vnuma.store.rows import Claim, Run, Sample, Vm
from vnuma.store.states import Outcome
from vnuma.store.types import utc_now
from vnuma.vsphere.preload import load_types

_NAME = "rehearsal"


def prepare() -> None:
    """In a play under `vnuma run`: open its store, read its run, and rehearse what every cell does with it.

    Changes nothing and raises nothing: a store that cannot be used is for the step that needs it to tell.
    """
    try:
        private = Private.read()
        if private:
            load_types()
            driver()
            _ask_once(private)
    except VnumaError:
        return


def _ask_once(private: Private) -> None:
    """For one VM, and with nothing changed: the statements are the same for every VM."""
    keep_store(private.store_url)
    store, run, study = open_run(private.run)
    for name, token in list(private.tokens.items())[:1]:
        vm = vm_of_run(store, run, name)
        why_no_more(store, run, study, vm)
        next_cell(store, run, study, vm)
        with store.rehearsal() as connection:
            leases.require_current(connection, vm.vm_key, token)
            claimed = claim_within(connection, run, study, vm, token)
            if isinstance(claimed, Claim):
                _write_a_cell(connection, run, vm, claimed)


def _write_a_cell(connection: Connection, run: Run, vm: Vm, claimed: Claim) -> None:
    """Every kind of row that a cell writes and reads, so that its statements are compiled."""
    attempt, token, now = claimed.attempt_id, claimed.token, utc_now()
    begin = audit.last_id(connection)
    line = AuditLine(now, _NAME, vm.name, vm.vm_key, _NAME, (), None, run.name, None)
    audit.add_line(connection, line, run.id)
    audit.lines(connection, run.id, vm_key=vm.vm_key, after=begin)
    attempts.changes_of_vm(connection, vm.id)
    attempts.set_step(connection, attempt, token, _NAME)
    attempts.save_plan(connection, attempt, token, intended=None, change=None, predicted=None)
    attempts.save_effective(connection, attempt, token, None)
    for values in ({"one": 1}, {"one": 1, "two": 2}):  # one row and several are two statements
        facts.add_attempt_facts(connection, attempt, token, _NAME, values)
        facts.add_vm_facts(connection, vm.id, _NAME, values)
    facts.last_of_vm(connection, run.id, vm.vm_key, _NAME)
    facts.last_scope(connection, vm.id, (_NAME,))
    facts.last_value(connection, vm.id, _NAME, "one", not_of=attempt)
    facts.facts_of_run(connection, run.id, _NAME)
    sample = Sample(_NAME, 1, _NAME, 1, warmup=True, at=now, reason=_NAME)
    samples.add_samples(connection, attempt, token, [sample])
    attempts.finish(connection, attempt, token, Outcome.VALID)
