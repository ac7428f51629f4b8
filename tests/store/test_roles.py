"""Owner, writer and reader of a store on PostgreSQL, each connected as a login of its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import run

import psycopg
import pytest
from sqlalchemy import text

from tests.report.build import Story, build, study_text
from tests.store.build import claim, new_run, new_vm, samples
from tests.support.cli import vnuma_here
from tests.support.postgresql import Cluster, database_of, find_binaries
from vnuma.errors import InputError, StoreError
from vnuma.serve.pages import Pages
from vnuma.serve.reader import Reader
from vnuma.store import attempts, cells, leases, runs, tables
from vnuma.store.audit import AuditLine, add_line
from vnuma.store.migrate import Roles, init_store
from vnuma.store.open import open_for_reading, open_store
from vnuma.store.rows import Outcome, RunState
from vnuma.store.samples import add_samples
from vnuma.store.schema import HEAD, VERSION_TABLE
from vnuma.store.tables import utc_now

DATA = Path(__file__).parent / "data"
_numbers = count()


@dataclass(frozen=True)
class Site:
    """A store with its roles, and the URLs of a login in each."""

    admin: str
    owner: str
    writer: str
    reader: str


@pytest.fixture
def site(postgresql: Cluster) -> Site:
    """Made by `vnuma store init`; three logins, as an administrator makes them."""
    admin = postgresql.new_database()
    init_store(admin)
    return with_logins(postgresql, admin)


def with_logins(server: Cluster, admin: str) -> Site:
    """A login in each role."""
    database, urls = database_of(admin), []
    for part in ("owner", "writer", "reader"):
        login = f"{part}{next(_numbers)}"
        server.execute(admin, f"CREATE ROLE {login} LOGIN", f"GRANT {database}_{part} TO {login}")
        urls.append(server.url_as(login, admin))
    return Site(admin, *urls)


def test_a_writer_does_all_that_a_run_does(site: Site) -> None:
    """Run, VM, lease, cells, attempt, sample and audit line, with no right beyond its role's."""
    store = open_store(site.writer)
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    with store.write() as conn:
        add_samples(conn, got.id, leased.token, samples(3))
        attempts.finish(conn, got.id, leased.token, Outcome.VALID)
        add_line(
            conn,
            AuditLine(utc_now(), "ops", "sql16", "vc/1", None, None, "power off", [], None),
            leased.run.id,
        )
        leases.release_lease(conn, "vc/1", leased.token)

    with open_for_reading(site.reader).read() as conn:
        assert runs.get_run(conn, "quick.1").id == leased.run.id
        assert [cell.state for cell in cells.cells_of_run(conn, leased.run.id)] == ["valid"]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE", "DROP TABLE {} CASCADE"])
def test_neither_reader_nor_writer_removes_anything(shared_site: Site, statement: str) -> None:
    """The server itself refuses it, whatever program asks."""
    for url in (shared_site.reader, shared_site.writer):
        with psycopg.connect(url, autocommit=True) as conn:
            for name in (*tables.metadata.tables, VERSION_TABLE):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    conn.execute(statement.format(name))


def test_a_reader_reads_every_table_and_writes_none(shared_site: Site) -> None:
    """Neither a row more nor a changed one; and it cannot make a table of its own."""
    with psycopg.connect(shared_site.reader, autocommit=True) as conn:
        for name, table in tables.metadata.tables.items():
            column = next(iter(table.c)).name
            conn.execute(f"SELECT * FROM {name}")
            for statement in (
                f"INSERT INTO {name} DEFAULT VALUES",
                f"UPDATE {name} SET {column} = {column}",
                f"SELECT * FROM {name} FOR UPDATE",
                "CREATE TABLE mine (a int)",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    conn.execute(statement)


@pytest.mark.parametrize("name", ["audit", "sample", "fact", "study", "estate_check", VERSION_TABLE])
def test_what_is_written_once_is_not_changed_by_a_writer(shared_site: Site, name: str) -> None:
    """The audit log above all: who runs studies cannot rewrite what was done."""
    column = "version_num" if name == VERSION_TABLE else next(iter(tables.metadata.tables[name].c)).name
    with psycopg.connect(shared_site.writer) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(f"UPDATE {name} SET {column} = {column}")


@pytest.fixture(scope="module")
def shared_site(postgresql: Cluster) -> Site:
    """One for tests that change nothing in it."""
    admin = postgresql.new_database()
    init_store(admin)
    return with_logins(postgresql, admin)


def test_commands_that_read_work_as_reader_and_those_that_write_are_refused(
    site: Site, tmp_path: Path
) -> None:
    """Status, results, report, audit and `vnuma serve`; exit code 9 names the role that may stop."""
    build(open_store(site.writer), Story(text=study_text(blocks=1), state=RunState.RUNNING))
    store = ("--store", site.reader)

    for command in (
        ("status",),
        ("results", "quick.1"),
        ("report", "quick.1", "--output", tmp_path / "report.html"),
        ("audit",),
    ):
        done = vnuma_here(*command, *store)
        assert done.code == 0, done.text
    assert "quick.1" in Pages(Reader(open_for_reading(site.reader))).runs()
    stopped = vnuma_here("stop", "quick.1", *store)
    assert stopped.code == 9, stopped.text
    assert vnuma_here("stop", "quick.1", "--store", site.writer).code == 0


def test_a_store_without_roles_gets_them_with_all_that_is_in_it(postgresql: Cluster) -> None:
    """What earlier versions made belongs to a login: tables, sequences and functions are handed over."""
    admin = postgresql.new_store()
    new_run(open_store(admin))

    done = vnuma_here("store", "init", admin)

    assert done.code == 0, done.text
    logins = with_logins(postgresql, admin)
    new_run(open_store(logins.writer))
    with open_store(logins.reader).read() as conn:
        assert [one.name for one in runs.list_runs(conn)] == ["quick.1", "quick.2"]
    assert vnuma_here("store", "init", admin).code == 0


def test_who_is_no_superuser_makes_the_roles_too(postgresql: Cluster) -> None:
    """A login that owns the database and may make roles; the superuser need not be asked."""
    url = postgresql.new_database()
    login = f"dba{next(_numbers)}"
    postgresql.execute(
        url, f"CREATE ROLE {login} LOGIN CREATEROLE", f"ALTER DATABASE {database_of(url)} OWNER TO {login}"
    )

    init_store(postgresql.url_as(login, url))

    new_run(open_store(with_logins(postgresql, url).writer))


def test_who_may_neither_become_nor_grant_the_owner_is_told_the_grant(
    site: Site, postgresql: Cluster
) -> None:
    """All roles are there, and a writer runs `vnuma store init`; or none, and nothing is made."""
    done = vnuma_here("store", "init", site.writer)

    assert done.code == 9, done.text
    assert f'GRANT "{database_of(site.admin)}_owner" TO "writer' in done.err
    url = postgresql.new_database()  # without roles, by a login that may make none
    postgresql.execute(url, f"CREATE ROLE nobody{(number := next(_numbers))} LOGIN")
    assert vnuma_here("store", "init", postgresql.url_as(f"nobody{number}", url)).code == 9
    with pytest.raises(StoreError):
        open_store(url, create=False)


def test_who_may_grant_the_owner_grants_it_to_itself(site: Site, postgresql: Cluster) -> None:
    """A member with the right to grant and, since PostgreSQL 16, without the right to become it."""
    database, login = database_of(site.admin), f"dba{next(_numbers)}"
    postgresql.execute(
        site.admin,
        f"CREATE ROLE {login} LOGIN CREATEROLE NOINHERIT",
        f"ALTER DATABASE {database} OWNER TO {login}",
        f"GRANT {database}_owner TO {login} WITH ADMIN OPTION",
    )
    with psycopg.connect(site.admin) as server:
        if server.info.server_version >= 160000:
            server.execute(f"GRANT {database}_owner TO {login} WITH SET FALSE, INHERIT FALSE")

    init_store(postgresql.url_as(login, site.admin))


@pytest.mark.parametrize("who", ["writer", "reader"])
def test_only_the_owner_upgrades_and_the_others_continue_afterwards(postgresql: Cluster, who: str) -> None:
    """A new table has the grants of its role at once, though no administrator was there."""
    admin = postgresql.new_database()
    with psycopg.connect(admin) as server:
        server.execute((DATA / "0005" / "postgresql.sql").read_bytes())
    with psycopg.connect(admin) as server:  # roles as they were made when 0005 was the newest
        database = database_of(admin)
        for part in ("owner", "writer", "reader"):
            server.execute(f"CREATE ROLE {database}_{part}")
        for (table,) in server.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall():
            server.execute(f"ALTER TABLE {table} OWNER TO {database}_owner")
        for table in ("vm", "sample"):
            server.execute(f"ALTER FUNCTION {table}_written_once() OWNER TO {database}_owner")
        server.execute(f"GRANT CREATE, USAGE ON SCHEMA public TO {database}_owner")
        server.execute(f"GRANT SELECT ON vnuma_schema_version TO {database}_writer, {database}_reader")
    site = with_logins(postgresql, admin)
    url: str = getattr(site, who)

    with pytest.raises(StoreError):
        open_store(url)
    open_store(site.owner)

    with open_store(url, create=False).read() as conn:
        assert conn.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == HEAD
        conn.execute(text("SELECT * FROM estate_finding"))


def test_a_name_that_leaves_no_room_for_roles_is_refused(sqlite_url: str) -> None:
    """PostgreSQL would cut the three names to the same one, and readers would write. A file has none."""
    with pytest.raises(InputError):
        Roles.of_database("x" * 60)
    assert vnuma_here("store", "init", sqlite_url).code == 2


def test_a_reader_s_dump_is_a_backup_that_can_be_restored(
    site: Site, postgresql: Cluster, tmp_path: Path
) -> None:
    """As docs/store.md says: pg_dump by a reader, pg_restore, vnuma store init; the same figures."""
    build(open_store(site.writer), Story(text=study_text(blocks=1, sizes="500", forms="client")))
    programs, dump = find_binaries(), tmp_path / "vnuma.dump"
    taken = psycopg.conninfo.make_conninfo(site.reader)
    new = postgresql.new_database()
    options = ("--no-owner", "--no-privileges", "--exit-on-error")

    run([programs / "pg_dump", "--format=custom", f"--file={dump}", f"--dbname={taken}"], check=True)
    run([programs / "pg_restore", *options, f"--dbname={new}", dump], check=True)
    init_store(new)

    restored = with_logins(postgresql, new)
    before, after = (
        vnuma_here("results", "quick.1", "--format", "json", "--store", url)
        for url in (site.reader, restored.reader)
    )
    assert before.code == 0, before.text
    assert after.out == before.out
    new_run(open_store(restored.writer))
