"""`vnuma report`: one self-contained page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import RunArgument, StoreOption
from vnuma.cli.screen import echo


def report(
    run: RunArgument = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; reports/RUN.html by default.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write one HTML page that needs no network. Pages about the lab say so, in their name too.

    Examples: vnuma report; vnuma report quick.4 -o quick.html
    """
    from vnuma.engine.lease.context import store_url
    from vnuma.report.model.model import load_run
    from vnuma.report.page.render import write_page
    from vnuma.store.open import open_store

    loaded = load_run(open_store(store_url(store), create=False), run)
    path = write_page(loaded, output)
    echo(f"Report     {path}")
