"""`vnuma pool`: one answer over many runs, on several hosts, builds or generations of hardware."""

from __future__ import annotations

from typing import Annotated

import typer

from vnuma.cli.completion import run_names
from vnuma.cli.options import AllowOption, StoreOption, TableOrJsonOption, opened_store
from vnuma.cli.screen import echo, say


def pool(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Runs of one study, 3 VMs or more.", autocompletion=run_names),
    ],
    allow: AllowOption = None,
    format_: TableOrJsonOption = "table",
    store: StoreOption = None,
) -> None:
    """Summarise many runs: each arm's mean difference, how well runs agree, and the range for one more run.

    The run is the replicate: a VM counts once, however many blocks it has. Runs without verdicts are left out
    and named. For two runs use vnuma compare.

    Examples: vnuma pool quick.1 quick.2 quick.3; vnuma pool a.1 b.1 c.1 --allow sql_server.version;
    vnuma pool a.1 b.1 c.1 --format json
    """
    from vnuma.report.comparison import pool_text
    from vnuma.report.comparison.pool import pool_runs
    from vnuma.report.model.model import load_run

    opened = opened_store(store)
    found = pool_runs([load_run(opened, name) for name in runs], allow or ())
    if format_ == "json":
        echo(pool_text.as_json(found), nl=False)
        return
    say(pool_text.as_text(found).rstrip("\n"))
