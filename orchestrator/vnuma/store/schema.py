"""A store's revision, read without importing Alembic."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, column, inspect, select, table

from vnuma import __version__
from vnuma.errors import StoreError
from vnuma.store.place import Place
from vnuma.store.tables import schema_history

HEAD = "0011"
"""The newest revision in `migrations/versions`."""

VERSION_TABLE = "vnuma_schema_version"
"""Alembic's version table, with our name, since a PostgreSQL database may contain other products' too."""


def current_revision(conn: Connection) -> str | None:
    """The store's revision; None if there is no store yet."""
    if not inspect(conn).has_table(VERSION_TABLE):
        return None
    return conn.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))


def refuse_newer(conn: Connection, revision: str | None, place: Place) -> None:
    """Raise StoreError for a store of a newer version, which may contain what we cannot read."""
    if revision is None or revision <= HEAD:
        return
    writer = conn.scalar(
        select(schema_history.c.product_version).order_by(schema_history.c.revision.desc()).limit(1)
    )
    raise StoreError(
        f"This store was written by vnuma {writer}: {place} has schema {revision}, and vnuma "
        f"{__version__} supports schemas up to {HEAD}.",
        fix=f"Install vnuma {writer} or newer. Nothing was changed.",
    )


def refuse_foreign(conn: Connection, place: Place) -> None:
    """Raise StoreError for a SQLite file that belongs to another program."""
    tables = inspect(conn).get_table_names()
    if tables:
        raise StoreError(
            f"{place} is a SQLite database of another program (it contains the table '{tables[0]}').",
            fix="Name another file for the store. Nothing was changed.",
        )


def no_store(place: Place) -> StoreError:
    """The error for a store that does not exist and may not be created."""
    what = "that file does not exist" if place.is_sqlite and not place.path.exists() else "it has no tables"
    return StoreError(
        f"There is no store at {place}: {what}.",
        fix="Check --store and VNUMA_STORE. vnuma run STUDY creates a store.",
    )


def needs_upgrade(engine: Engine, place: Place, *, create: bool) -> bool:
    """Whether to migrate, by one or two small queries. Raises StoreError when the store may not be used."""
    with engine.connect() as conn, conn.begin():
        revision = current_revision(conn)
        refuse_newer(conn, revision, place)
        if revision is not None:
            return revision != HEAD
        if place.is_sqlite:
            refuse_foreign(conn, place)
    if not create:
        raise no_store(place)
    return True
