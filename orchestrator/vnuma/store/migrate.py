"""Migrate a store to the newest revision, and make its roles. Imported only when needed: Alembic is slow.

A new revision needs a file in `migrations/versions`, its number in `schema.HEAD`, the change in `tables`, and
dumps of stores of the previous revision in `tests/store/data`.

PostgreSQL's roles of a store are owner, writer and reader, named after the database. They cannot log in. A
person's or controller's login is a member of one, so the database's administrator grants and revokes access
with one statement, and no password passes through vnuma
(https://www.postgresql.org/docs/current/role-membership.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, insert, text

from vnuma import __version__
from vnuma.errors import InputError, StoreError, UsageError
from vnuma.store.place import POSTGRESQL_FORM, Place, parse_place
from vnuma.store.postgresql import LONG_WORK, postgresql_engine, translated
from vnuma.store.schema import HEAD, VERSION_TABLE, current_revision, refuse_newer
from vnuma.store.tables import (
    attempt,
    cell,
    estate_finding,
    lease,
    metadata,
    run,
    schema_history,
    site,
    utc_now,
    vm,
)

CHANGED = (
    *(run, site, vm, lease, cell, attempt),
    estate_finding,
)
"""Tables with updates. In all others, including the audit log and the samples, rows are written once."""

_OWN = (VERSION_TABLE, schema_history.name)
"""Written by migrations, read by everybody."""

_LONGEST_NAME = 63
"""Longest identifier in bytes; PostgreSQL truncates longer ones, which could make two roles one."""


@dataclass(frozen=True)
class Roles:
    """`owner` owns and migrates the tables, `writer` runs studies, `reader` reads."""

    owner: str
    writer: str
    reader: str

    @classmethod
    def of_database(cls, database: str) -> Roles:
        """The roles of the store in that database. Raises InputError if its name is too long."""
        roles = cls(*(f"{database}_{part}" for part in ("owner", "writer", "reader")))
        if len(roles.writer.encode()) > _LONGEST_NAME:
            raise InputError(
                f"The database's name '{database}' is too long for roles named after it.",
                fix="Use a name of at most 56 bytes.",
            )
        return roles


def make_roles(conn: Connection, place: Place) -> Roles:
    """Create missing roles, and make the owner own existing tables.

    The transaction continues as the owner. Raises database errors; StoreError where this login lacks the
    right.
    """
    database = str(conn.scalar(text("SELECT current_database()")))
    roles = Roles.of_database(database)
    me = conn.execute(
        text("SELECT rolname, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user")
    ).one()
    known = set(conn.scalars(text("SELECT rolname FROM pg_roles")))
    missing = [role for role in (roles.owner, roles.writer, roles.reader) if role not in known]
    if missing and not (me.rolsuper or me.rolcreaterole):
        raise StoreError(
            f"{me.rolname} may not make roles in the server of {place}, and {', '.join(missing)} is missing.",
            fix="Run vnuma store init as a superuser, or as a login with CREATEROLE that owns the database.",
        )
    for role in missing:
        _do(conn, "CREATE ROLE {} NOLOGIN", role)
    if not _may_become(conn, roles.owner):
        _become_member(conn, roles.owner, place)
    schema = str(conn.scalar(text("SELECT current_schema()")))
    for role in (roles.owner, roles.writer, roles.reader):
        _do(conn, "GRANT CONNECT ON DATABASE {} TO {}", database, role)
        _do(conn, "GRANT USAGE ON SCHEMA {} TO {}", schema, role)
    _do(conn, "GRANT CREATE ON SCHEMA {} TO {}", schema, roles.owner)
    _hand_over(conn, roles.owner)
    _do(conn, "SET LOCAL ROLE {}", roles.owner)
    return roles


def _become_member(conn: Connection, owner: str, place: Place) -> None:
    """Grant the owner's role to this login, which needs the right to grant it."""
    me = conn.execute(
        text(
            "SELECT rolname, rolcreaterole, pg_has_role(oid, :owner, 'MEMBER WITH ADMIN OPTION') AS is_admin "
            "FROM pg_roles WHERE rolname = current_user"
        ),
        {"owner": owner},
    ).one()
    asks_for_set = _asks_for_set(conn)
    if not (me.is_admin or (me.rolcreaterole and not asks_for_set)):
        raise StoreError(
            f"{me.rolname} may neither become {owner}, the owner of {place}, nor grant itself that role.",
            fix=f'As a superuser: vnuma store init, or in psql GRANT "{owner}" TO "{me.rolname}";',
        )
    _do(conn, "GRANT {} TO CURRENT_USER" + (" WITH SET TRUE" if asks_for_set else ""), owner)


def _hand_over(conn: Connection, owner: str) -> None:
    """Transfer tables from before the roles existed to the owner."""
    names = {*metadata.tables, VERSION_TABLE}
    found = conn.execute(
        text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tableowner <> :owner"),
        {"owner": owner},
    )
    for name in names & set(found.scalars()):
        _do(conn, "ALTER TABLE {} OWNER TO {}", name, owner)
    functions = conn.execute(
        text(
            "SELECT proname FROM pg_proc JOIN pg_roles ON pg_roles.oid = proowner "
            "WHERE pronamespace = current_schema()::regnamespace AND rolname <> :owner"
        ),
        {"owner": owner},
    )
    for name in {f"{name}_written_once" for name in names} & set(functions.scalars()):
        _do(conn, "ALTER FUNCTION {}() OWNER TO {}", name, owner)


def roles_of(conn: Connection) -> Roles | None:
    """The roles of this store; None without roles, or if a login owns it."""
    owner = _owner(conn)
    database = str(conn.scalar(text("SELECT current_database()")))
    return Roles.of_database(database) if owner == f"{database}_owner" else None


def grant(conn: Connection, roles: Roles) -> None:
    """Grant each role its rights on each table, as the tables' owner."""
    for name in (*metadata.tables, VERSION_TABLE):
        _do(conn, "REVOKE ALL ON {} FROM {}, {}", name, roles.writer, roles.reader)
        _do(conn, "GRANT SELECT ON {} TO {}, {}", name, roles.writer, roles.reader)
        if name not in _OWN:
            _do(conn, "GRANT INSERT ON {} TO {}", name, roles.writer)
    for changed in CHANGED:
        _do(conn, "GRANT UPDATE ON {} TO {}", changed.name, roles.writer)
    for sequence in conn.scalars(
        text("SELECT sequencename FROM pg_sequences WHERE schemaname = current_schema()")
    ).all():
        if sequence.removesuffix("_id_seq") in metadata.tables:
            _do(conn, "GRANT USAGE ON SEQUENCE {} TO {}", sequence, roles.writer)
            _do(conn, "GRANT SELECT ON SEQUENCE {} TO {}", sequence, roles.reader)  # pg_dump reads them


def act_as_owner(conn: Connection, place: Place) -> None:
    """Run a migration as the owner. Raises StoreError if this login may not SET ROLE to it."""
    owner = _owner(conn)
    if owner is None:
        return
    if not _may_become(conn, owner):
        raise StoreError(
            f"The store {place} has the older schema {current_revision(conn)}, and only a login that may "
            f"SET ROLE {owner} may upgrade it.",
            fix="As such a login, or a superuser: vnuma store init URL. Readers and writers continue "
            "afterwards.",
        )
    _do(conn, "SET LOCAL ROLE {}", owner)


def _owner(conn: Connection) -> str | None:
    owner: str | None = conn.scalar(
        text("SELECT tableowner FROM pg_tables WHERE schemaname = current_schema() AND tablename = :name"),
        {"name": VERSION_TABLE},
    )
    return owner


def _may_become(conn: Connection, role: str) -> bool:
    """Whether SET ROLE is allowed. Since PostgreSQL 16 a member may lack that right.

    A login with CREATEROLE does for each role that it created, though it may grant the role, also to itself
    (https://www.postgresql.org/docs/16/runtime-config-client.html#GUC-CREATEROLE-SELF-GRANT).
    """
    right = "SET" if _asks_for_set(conn) else "MEMBER"
    return bool(
        conn.scalar(text("SELECT pg_has_role(current_user, :role, :right)"), {"role": role, "right": right})
    )


def _asks_for_set(conn: Connection) -> bool:
    """Whether the server is PostgreSQL 16 or newer, where SET is a membership option of its own."""
    return int(conn.scalar(text("SHOW server_version_num")) or 0) >= 160000


def _do(conn: Connection, statement: str, *names: str) -> None:
    """Execute a statement with identifiers, which cannot be parameters."""
    quote = conn.dialect.identifier_preparer.quote_identifier
    conn.exec_driver_sql(statement.format(*map(quote, names)).replace("%", "%%"))


MIGRATIONS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x766E756D61
"""A fixed number that all versions of the product share ("vnuma" in ASCII)."""


def upgrade(engine: Engine, place: Place) -> None:
    """Migrate in one transaction, once, even if several processes try at the same time.

    SQLite's BEGIN IMMEDIATE admits one writer; PostgreSQL takes an advisory lock. A second process finds the
    work done. A failed migration leaves the store unchanged.
    """
    with engine.connect().execution_options(vnuma_write=True, **LONG_WORK) as conn, conn.begin():
        if not place.is_sqlite:
            lock_schema(conn)
            act_as_owner(conn, place)
        upgrade_in(conn, place)


def upgrade_in(conn: Connection, place: Place) -> None:
    """The same in the caller's transaction, which holds the lock. In a store with roles, they get their
    grants.
    """
    before = current_revision(conn)
    refuse_newer(conn, before, place)
    if before is None or before < HEAD:
        command.upgrade(alembic_config(conn), HEAD)
        conn.execute(
            insert(schema_history),
            {"revision": HEAD, "product_version": __version__, "applied_at": utc_now()},
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
