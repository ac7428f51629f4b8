"""`vnuma results`: medians and differences of a run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from vnuma.cli.options import StoreOption


class ResultsFormat(StrEnum):
    """What to print."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def results(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Name of a run, as quick.4, or `latest`.")
    ] = "latest",
    format_: Annotated[
        ResultsFormat, typer.Option("--format", help="table, csv or json.")
    ] = ResultsFormat.TABLE,
    store: StoreOption = None,
) -> None:
    """Show medians per size and topology, differences from the reference, and what counts.

    Examples: vnuma results; vnuma results quick.4 --format csv > quick.4.csv
    """
    from vnuma.engine.context import store_url
    from vnuma.report import tables
    from vnuma.report.model import load_run
    from vnuma.store.open import open_store

    loaded = load_run(open_store(store_url(store), create=False), run)
    render = {
        ResultsFormat.TABLE: tables.as_text,
        ResultsFormat.CSV: tables.as_csv,
        ResultsFormat.JSON: tables.as_json,
    }[format_]
    typer.echo(render(loaded), nl=False)
