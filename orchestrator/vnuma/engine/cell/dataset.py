"""The study's dataset in the guest: prepared before measuring, dropped at the end of the run."""

from __future__ import annotations

from contextlib import nullcontext, suppress

from sqlalchemy import Connection

from vnuma.domain.vm.change import Edit
from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.log import journal_of
from vnuma.engine.cell.measure_cell import CellSystem
from vnuma.engine.instance.sql_identity import is_ours
from vnuma.engine.lease.attempt import step
from vnuma.engine.lease.baseline import NOT_KNOWN
from vnuma.engine.lease.supervision import tolerating_full_store
from vnuma.engine.lease.whose_vm import find_own
from vnuma.errors import AttemptFailed, EnvironmentProblem, StoreError, WrongServer
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import dataset, ownership
from vnuma.store import audit, facts
from vnuma.store.rows import Claim
from vnuma.workloads.interface import Document, workload_named

DATABASE = "sql.database"
"""Name of the study's database in diffs and audit lines."""

LEFT_BEHIND = "warning"
"""Facts about what the run could not remove, with the reason."""

_DROPPED = "dataset_dropped"
"""Fact that the dataset was dropped, or found missing, while its run may continue."""


def prepare_cell(context: VmContext, attempt: Claim) -> Document:
    """The step `dataset` of a cell: create the workload's data once, and verify them."""
    system = CellSystem(context, attempt)
    with step(context, attempt, "dataset"), system.reached():
        workload = workload_named(context.study.workload.name)
        making = None if is_expected(context) else _making(context)
        with journal_of(context).change("dataset", [making]) if making else nullcontext():
            if making:
                with connect(context.sql()) as connection:
                    _drop_cut_off(context, connection)
            prepared = workload.prepare(system)
        system.record("dataset", prepared)
        return prepared


def _making(context: VmContext) -> Edit | None:
    """The database that `prepare_cell` creates; None if it exists, possibly from an earlier run."""
    study = context.study
    if "database" not in study.workload.needs:
        return None
    with connect(context.sql()) as connection:
        there = not _is_cut_off(context, connection) and ownership.require_ours(
            connection, study.dataset.database
        )
    return None if there else Edit(DATABASE, None, study.dataset.database)


def _is_cut_off(context: VmContext, connection: pyodbc.Connection) -> bool:
    """Whether this run's last attempt to create the database ended before its marker: by the audit log the
    run began it, and nothing is in it.
    """
    database, vm = context.study.dataset.database, context.vm
    with context.store.read() as read:
        lines = audit.changes(audit.lines(read, context.run.id, vm_key=vm.vm_key))
    begun = [(line, edit) for line in lines for edit in line.change if edit["setting"] == DATABASE]
    if not begun:
        return False
    line, edit = begun[-1]
    return edit["after"] == database and line.outcome != "made" and ownership.is_empty(connection, database)


def _drop_cut_off(context: VmContext, connection: pyodbc.Connection) -> bool:
    """Drop what `_is_cut_off` finds, to create it anew with all its settings; whether there was one."""
    found = _is_cut_off(context, connection)
    if found:
        ownership.drop(connection, context.study.dataset.database)
    return found


def planned_making(context: VmContext, server: SqlServer | None) -> Edit | None:
    """The database that the next cell creates; None if it exists. Marked unknown without a server to ask."""
    if is_expected(context):
        return None
    if server is None:
        return Edit(DATABASE, NOT_KNOWN, context.study.dataset.database)
    return _making(context)


def is_expected(context: VmContext) -> bool:
    """Whether this run has made its database on this VM and not dropped it since; a boot waits for it."""
    if "database" not in context.study.workload.needs:
        return False
    scopes = ("dataset", _DROPPED)
    return context.store.ask(facts.last_scope, context.vm.id, scopes) == "dataset"


def note_lost(context: VmContext) -> None:
    """Record that the dataset is gone, though this run did not drop it: the next step makes it again."""
    with context.store.write() as connection:
        facts.add_vm_facts(connection, context.vm.id, _DROPPED, {"dropped": False, "lost": True})


def drop_planned(context: VmContext) -> tuple[Edit, ...]:
    """What `drop_after_run` would drop: this run's database, if it made one."""
    dataset = context.study.dataset
    if not dataset.drop_after or not is_expected(context):
        return ()
    return (Edit(DATABASE, dataset.database, None),)


def databases_left(connection: Connection, run_id: int) -> dict[int, str]:
    """Why the last attempt to drop the run's database failed, by VM id; without VMs that dropped it."""
    facts_found = [
        fact for scope in (LEFT_BEHIND, _DROPPED) for fact in facts.facts_of_run(connection, run_id, scope)
    ]
    last = {fact.vm_id: fact for fact in sorted(facts_found, key=lambda fact: fact.id)}
    return {vm: str(fact.value) for vm, fact in last.items() if vm and fact.scope == LEFT_BEHIND}


def drop_after_run(context: VmContext) -> str | None:
    """Drop the study's database if the study says so. Returns why that failed, or None.

    A failure is stored and does not prevent the VM's restore, which removes files in a guest.
    """
    if "database" not in context.study.workload.needs or not context.study.dataset.drop_after:
        return None
    try:
        planned = drop_planned(context)
        journal_entry = journal_of(context).change("dataset", planned) if planned else nullcontext()
        with context.vsphere() as session:
            if not is_ours(context, session, find_own(session, context.vm)):
                raise WrongServer(
                    f"{context.sql().where} is not proven to be the SQL Server of {context.vm.name}.",
                    fix="vnuma doctor shows why.",
                )
        with journal_entry, connect(context.sql()) as connection:
            dropped = _drop_cut_off(context, connection) or dataset.drop(
                connection, context.study.dataset.database
            )
        with tolerating_full_store(), context.store.write() as write:
            facts.add_vm_facts(write, context.vm.id, _DROPPED, {"dropped": dropped})
    except (EnvironmentProblem, AttemptFailed, StoreError) as error:
        reason = f"database {context.study.dataset.database} was not dropped: {error.what}"
        with suppress(StoreError), context.store.write() as write:
            facts.add_vm_facts(write, context.vm.id, LEFT_BEHIND, {"dataset": reason})
        return reason
    return None
