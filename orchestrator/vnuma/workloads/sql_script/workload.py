"""The user's own T-SQL, timed and checked as the other workloads are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vnuma.domain.study.study import Dataset
from vnuma.errors import VnumaError
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import ownership
from vnuma.workloads.bench import Document, Obstacle, Site
from vnuma.workloads.query import Query
from vnuma.workloads.query_bench import QueryBench, query_bench
from vnuma.workloads.sql_script import script
from vnuma.workloads.sql_script.settings import SqlScript
from vnuma.workloads.sql_script.text import SIZE

NAME = "sql_script"


def script_queries(settings: SqlScript) -> tuple[Query, ...]:
    """Every statement in every size, in the order of the study."""
    return tuple(
        Query(
            script.replaced(text, {**settings.parameters, SIZE: size}),
            settings.expected_rows.get(form),
            settings.rows_from,
            times=settings.times,
            workload=NAME,
            size=size,
            form=form,
        )
        for size in settings.sizes
        for form, text in settings.statements.items()
    )


class SqlScriptWorkload:
    """Setup once per boot, each statement in each size, teardown at the boot's end."""

    settings = SqlScript

    def obstacles(
        self, connection: pyodbc.Connection, settings: SqlScript, dataset: Dataset
    ) -> Iterator[Obstacle]:
        """A database that is not online, and batches that SQL Server's parser refuses."""
        del dataset
        if settings.database:
            state = ownership.state(connection, settings.database)
            if state != "ONLINE":
                found = f"is {state}" if state else "does not exist, or this login may not see it"
                yield Obstacle(
                    f"workload.database: {settings.database} {found}.", "Name a database that is online."
                )
        for place, batch in _batches(settings):
            wrong = script.syntax_error(connection, batch)
            if wrong:
                yield Obstacle(f"workload.{place}: {wrong}", "Correct it; no part of it was run.")

    def prepare(self, site: Site) -> Document:
        """The study's own database, unless the script uses another."""
        if site.settings.database:
            return {}
        database = site.dataset.database
        with connect(site.server) as connection:
            there = ownership.require_ours(connection, database)
            if not there:
                ownership.create(connection, database)
        return {"database": database, "changed": not there}

    def sentinel(self, settings: SqlScript, dataset: Dataset) -> Query | None:
        """None: nothing is known about the user's data."""
        del settings, dataset
        return None

    @contextmanager
    def bench(self, site: Site) -> Iterator[QueryBench]:
        """Setup runs in the measuring session, so that its temporary tables exist; teardown in its own."""
        settings, values = site.settings, site.settings.parameters
        database = settings.database or site.dataset.database
        queries = script_queries(settings)
        try:
            with connect(site.server, database) as connection:
                site.say("setup")
                script.run_script(connection, script.replaced(settings.setup, values), "setup")
                with query_bench(site, connection, queries) as bench:
                    yield bench
        except VnumaError as error:
            try:
                _tear_down(site, database)
            except VnumaError as second:
                error.what = f"{error.what} The teardown also failed: {second.what}"
            raise
        _tear_down(site, database)


def _tear_down(site: Site, database: str) -> None:
    settings = site.settings
    if settings.teardown.strip():
        with connect(site.server, database) as connection:
            script.run_script(connection, script.replaced(settings.teardown, settings.parameters), "teardown")


def _batches(settings: SqlScript) -> Iterator[tuple[str, str]]:
    """Everything that will be sent, with its place in the study file."""
    for place, text in (("setup", settings.setup), ("teardown", settings.teardown)):
        for batch in script.batches(script.replaced(text, settings.parameters)):
            yield place, batch
    smallest = min(settings.sizes)
    for query in script_queries(settings):
        if query.size == smallest:
            yield f"statements.{query.form}", query.sql


WORKLOAD = SqlScriptWorkload()
