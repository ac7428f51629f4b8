"""`vnuma store`: make a store on PostgreSQL, and copy one store into another."""

from __future__ import annotations

from typing import Annotated

import typer

from vnuma.cli.screen import note, say
from vnuma.cli.verb import group, subcommand

app = group("Create a store on PostgreSQL with its roles, or copy a store.")


@subcommand(app)
def init(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="postgresql://ADMIN@HOST/DATABASE; by default VNUMA_STORE."),
    ] = None,
) -> None:
    """Create or upgrade tables, roles and grants in a PostgreSQL database. It can be repeated.

    Examples: vnuma store init postgresql://postgres@db.example.com/vnuma
    """
    from vnuma.engine.access.places import store_url
    from vnuma.store.migrate import init_store
    from vnuma.store.schema import HEAD

    place, roles = init_store(store_url(url))
    say(f"Store     {place}, schema {HEAD}")
    say(f"Owner     {roles.owner}: has the tables and upgrades them")
    say(f"Writer    {roles.writer}: vnuma run, restore, stop; no row of the audit log or of a sample changes")
    say(f"Reader    {roles.reader}: vnuma status, results, report, audit, serve; cannot write")
    note(f'Next      psql: CREATE ROLE ops LOGIN; GRANT "{roles.writer}" TO ops;   (\\password ops)')


@subcommand(app)
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to copy, such as sqlite:///FILE.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty one, such as postgresql://...")],
) -> None:
    """Copy a whole store into an empty one: runs, samples, baselines, leases, audit log. FROM stays as it is.

    Rows and audit log are copied completely or not at all.

    Examples: vnuma store copy sqlite:////var/lib/vnuma/vnuma.db postgresql://owner@db.example.com/vnuma
    """
    from vnuma.engine.run.store_copy import copy_whole_store
    from vnuma.store.place import parse_place

    rows, audit = copy_whole_store(source, target)
    for name, number in rows.items():
        if number:
            say(f"{name:14}  {number:,}")
    say(f"Copied    {parse_place(source)} to {parse_place(target)}; counts agree.")
    if audit:
        say(f"Audit     {audit}")
    note("Next      Set VNUMA_STORE to the new store everywhere, and put the old one away.")
