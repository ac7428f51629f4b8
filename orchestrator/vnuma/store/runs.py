"""Studies and their runs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from sqlalchemy import ColumnElement, Connection, Select, Update, func, insert, select, text, update

from vnuma import __version__
from vnuma.errors import InputError, StoreError
from vnuma.store import tables
from vnuma.store.rows import Run, RunState, StopRequest, Study
from vnuma.store.tables import add_unless_there, all_of, one_of, record_of, utc_now

IMPORTED = "imported"
"""Scope of the fact that a run was imported: it was measured elsewhere and cannot continue here."""

CONTRACT = "contract"
"""Scope of the fact that a run belongs to `vnuma contract`, which measures nothing."""

_ID_DIGITS = 10
_run = tables.run.c
_site = tables.site.c
_study = tables.study.c


def store_begun(conn: Connection) -> datetime:
    """When the store was made."""
    begun: datetime = conn.scalars(select(func.min(tables.schema_history.c.applied_at))).one()
    return begun


def save_study(conn: Connection, name: str, yaml: str) -> Study:
    """Store a study's text; the same name and text give the same row."""
    sha256 = hashlib.sha256(yaml.encode()).hexdigest()
    wanted = select(tables.study).where(_study.name == name, _study.sha256 == sha256)
    add_unless_there(conn, tables.study, name=name, yaml=yaml, sha256=sha256)
    return Study(**conn.execute(wanted).one()._mapping)


def get_study(conn: Connection, study_id: int) -> Study:
    """The study with that id. Raises StoreError if there is none."""
    found = one_of(conn, Study, select(tables.study).where(_study.id == study_id))
    if found is None:
        raise StoreError(f"The store has no study {study_id}.", fix="vnuma status lists the runs.")
    return found


def create_run(
    conn: Connection,
    study: Study,
    *,
    seed: int,
    simulated: str | None = None,
    inventory: str | None = None,
    ticket: str | None = None,
) -> Run:
    """Create a planned run, named with the study's next number; numbers are never reused."""
    if conn.dialect.name == "postgresql":
        conn.execute(text("LOCK TABLE run IN SHARE ROW EXCLUSIVE MODE"))
    last = conn.scalar(select(func.max(_run.number)).where(_run.study_name == study.name))
    number = (last or 0) + 1
    row = conn.execute(
        insert(tables.run)
        .values(
            study_id=study.id,
            name=f"{study.name}.{number}",
            study_name=study.name,
            number=number,
            seed=seed,
            state=RunState.PLANNED,
            simulated=simulated,
            product_version=__version__,
            inventory=inventory,
            ticket=ticket,
            created_at=utc_now(),
        )
        .returning(*tables.run.c)
    ).one()
    return record_of(Run, row._mapping)


def get_run(conn: Connection, ref: str | int) -> Run:
    """The run with that id or name, or for 'latest' the newest that measures. Raises InputError."""
    query = select(tables.run)
    if ref == "latest":
        query = query.where(_run.id.not_in(_with_fact(CONTRACT))).order_by(_run.id.desc()).limit(1)
    elif isinstance(ref, int) or (ref.isdecimal() and len(ref) < _ID_DIGITS):
        query = query.where(_run.id == int(ref))
    else:
        query = query.where(_run.name == ref)
    found = one_of(conn, Run, query)
    if found is None:
        if ref == "latest":
            raise InputError("The store has no runs yet.", fix="vnuma run STUDY starts one.")
        close = get_close_matches(str(ref), conn.scalars(select(_run.name)), n=1)
        fix = f"Did you mean {close[0]}? " if close else ""
        raise InputError(f"The store has no run '{ref}'.", fix=f"{fix}vnuma status lists the runs.")
    return found


def lock_run(conn: Connection, run: Run) -> Run:
    """The run, or the site's part of it, as it is now, locked until this transaction ends."""
    row = conn.execute(select(tables.run).where(_run.id == run.id).with_for_update()).one()
    return at_site(conn, record_of(Run, row._mapping), run.site)


def at_site(conn: Connection, run: Run, site: str | None) -> Run:
    """A site's part of a run: the run with that part's supervisor.

    The run itself without a site, or for a site without a part of its own.
    """
    part = (_site.run_id == run.id) & (_site.node == site)
    wanted = select(_site.supervisor_pid, _site.supervisor_host, _site.heartbeat_at).where(part)
    row = conn.execute(wanted).one_or_none() if site else None
    return run if row is None else replace(run, site=site, **row._mapping)


def list_runs(conn: Connection) -> tuple[Run, ...]:
    """All runs, oldest first."""
    return all_of(conn, Run, select(tables.run).order_by(_run.id))


def measuring_runs(conn: Connection) -> tuple[Run, ...]:
    """All runs of studies, oldest first, without those of `vnuma contract`."""
    query = select(tables.run).where(_run.id.not_in(_with_fact(CONTRACT))).order_by(_run.id)
    return all_of(conn, Run, query)


def unfinished(conn: Connection, name: str, yaml: str) -> Run | None:
    """The latest run of this study, with this text, made here, if it can be continued; else None."""
    own = (_run.study_name == name) & (_study.yaml == yaml) & _run.id.not_in(imported_ids())
    last = select(tables.run).join(tables.study).where(own).order_by(_run.id.desc()).limit(1)
    run = one_of(conn, Run, last)
    return None if run is None or run.state in (RunState.FINISHED, RunState.FAILED) else run


def set_run_state(conn: Connection, run_id: int, state: RunState) -> None:
    """Set a run's state. Ended and conflicting runs get a finish time; a resumed one loses it."""
    working = state in (RunState.PLANNED, RunState.RUNNING, RunState.STOPPING)
    _update(conn, run_id, state=state, finished_at=None if working else utc_now())


def set_inventory(conn: Connection, run_id: int, inventory: str) -> None:
    """Set the run's inventory, also for its restore."""
    _update(conn, run_id, inventory=inventory)


def set_origin(conn: Connection, run: Run, *, simulated: str | None, driver: object) -> None:
    """Set the run's scenario and client, as far as its first VMs have not set them."""
    _update(conn, run.id, simulated=run.simulated or simulated, driver_json=run.driver or driver)


def request_stop(conn: Connection, run_id: int, how: StopRequest | None) -> None:
    """Ask a run to stop; None withdraws the request, as a resume does."""
    _update(conn, run_id, stop_requested=how)


def touch_supervisor(conn: Connection, run: Run, *, pid: int, host: str) -> None:
    """Record this process's heartbeat as supervisor of the run, or of the site's part of it."""
    conn.execute(_supervised(run).values(supervisor_pid=pid, supervisor_host=host, heartbeat_at=utc_now()))


def keep_supervisor(conn: Connection, run: Run, *, pid: int, host: str) -> bool:
    """Record the heartbeat if this process is still the supervisor; returns whether it is."""
    row = (tables.site if run.site else tables.run).c
    kept = _supervised(run).where(row.supervisor_pid == pid, row.supervisor_host == host)
    return conn.execute(kept.values(heartbeat_at=utc_now())).rowcount > 0


def clear_supervisor(conn: Connection, run: Run) -> None:
    """Remove the supervisor of the run, or of the site's part of it."""
    conn.execute(_supervised(run).values(supervisor_pid=None, supervisor_host=None, heartbeat_at=None))


def _supervised(run: Run) -> Update:
    """An update of the row with the supervisor of the run, or of the site's part of it."""
    if run.site is None:
        return update(tables.run).where(_run.id == run.id)
    return update(tables.site).where(_site.run_id == run.id, _site.node == run.site)


def imported_ids() -> Select[int]:
    """The ids of imported runs, whose VMs do not belong to this site."""
    return _with_fact(IMPORTED)


def _with_fact(scope: str) -> Select[int]:
    return select(tables.fact.c.run_id).where(tables.fact.c.scope == scope)


def is_imported() -> ColumnElement[bool]:
    """Whether a query's run was imported, by that run's facts alone."""
    return _with_fact(IMPORTED).where(tables.fact.c.run_id == _run.id).exists()


def refuse_imported(conn: Connection, run_id: int) -> None:
    """Raise InputError for an imported run, which cannot be leased, resumed or restored."""
    name = conn.scalar(select(_run.name).where(_run.id == run_id, is_imported()))
    if name is not None:
        raise InputError(
            f"{name} was imported: it was measured elsewhere, so it cannot be resumed and its VMs "
            "cannot be changed.",
            fix=f"vnuma report {name}",
        )


def refuse_contract(conn: Connection, run: Run) -> None:
    """Raise InputError for a run of `vnuma contract`, which cannot be resumed."""
    if conn.scalar(_with_fact(CONTRACT).where(tables.fact.c.run_id == run.id)) is not None:
        raise InputError(
            f"{run.name} is a run of vnuma contract: it measures nothing and cannot be resumed.",
            fix=(
                f"Run vnuma contract --vcenter again. If a VM is not restored: vnuma restore --run {run.name}"
            ),
        )


def _update(conn: Connection, run_id: int, **values: object) -> None:
    if conn.execute(update(tables.run).where(_run.id == run_id).values(**values)).rowcount == 0:
        raise StoreError(f"The store has no run {run_id}.", fix="vnuma status lists the runs.")
