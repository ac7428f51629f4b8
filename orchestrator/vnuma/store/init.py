"""Create or upgrade a store on PostgreSQL as its owner: tables, roles and grants in one transaction."""

from __future__ import annotations

from vnuma.errors import UsageError
from vnuma.store.migrate import lock_schema, upgrade_in
from vnuma.store.place import POSTGRESQL_FORM, Place, parse_place
from vnuma.store.postgresql import LONG_WORK, postgresql_engine
from vnuma.store.roles import Roles, grant, make_roles
from vnuma.store.translate import translated


def init_store(url: str) -> tuple[Place, Roles]:
    """Create what is missing; existing objects stay and get this version's grants.

    Raises UsageError for SQLite, which has no roles, and StoreError.
    """
    place = parse_place(url)
    if place.is_sqlite:
        raise UsageError(
            f"{place} is a SQLite file: its readers and writers are those of the file.",
            fix=f"Roles need PostgreSQL: vnuma store init {POSTGRESQL_FORM}",
        )
    engine = postgresql_engine(place)
    with translated(place), engine.connect().execution_options(**LONG_WORK) as conn, conn.begin():
        lock_schema(conn)
        roles = make_roles(conn, place)
        upgrade_in(conn, place)
        grant(conn, roles)
    return place, roles
