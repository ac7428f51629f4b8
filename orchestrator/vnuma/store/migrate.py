"""Migrate a store to the newest revision. Imported only when needed, since Alembic loads slowly.

A new revision needs a file in `migrations/versions`, its number in `schema.HEAD`, the change in `tables`, and
dumps of stores of the previous revision in `tests/store/data`.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, insert, text

from vnuma import __version__
from vnuma.errors import UsageError
from vnuma.store.place import POSTGRESQL_FORM, Place, parse_place
from vnuma.store.postgresql import LONG_WORK, postgresql_engine
from vnuma.store.roles import Roles, act_as_owner, grant, make_roles, roles_of
from vnuma.store.schema import HEAD, VERSION_TABLE, current_revision, refuse_newer
from vnuma.store.tables import schema_history
from vnuma.store.translate import translated
from vnuma.store.types import utc_now

MIGRATIONS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x766E756D61
"""A fixed number that all versions of the product share ("vnuma" in ASCII)."""


def upgrade(engine: Engine, place: Place, *, revision: str = HEAD) -> None:
    """Migrate in one transaction, once, even if several processes try at the same time.

    SQLite's BEGIN IMMEDIATE admits one writer; PostgreSQL takes an advisory lock. A second process finds the
    work done. A failed migration leaves the store unchanged.
    """
    with engine.connect().execution_options(vnuma_write=True, **LONG_WORK) as conn, conn.begin():
        if not place.is_sqlite:
            lock_schema(conn)
            act_as_owner(conn, place)
        upgrade_in(conn, place, revision=revision)


def upgrade_in(conn: Connection, place: Place, *, revision: str = HEAD) -> None:
    """The same in the caller's transaction, which holds the lock. In a store with roles, they get their
    grants.
    """
    before = current_revision(conn)
    refuse_newer(conn, before, place)
    if before is None or before < revision:
        command.upgrade(alembic_config(conn), revision)
        conn.execute(
            insert(schema_history),
            {"revision": revision, "product_version": __version__, "applied_at": utc_now()},
        )
        if not place.is_sqlite and (roles := roles_of(conn)):
            grant(conn, roles)


def lock_schema(conn: Connection) -> None:
    """Prevent other migrations of a store on this PostgreSQL database until this transaction ends."""
    conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})


def alembic_config(conn: Connection) -> Config:
    """Alembic's configuration without a file: our scripts, our version table, this connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = conn
    config.attributes["version_table"] = VERSION_TABLE
    return config


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
