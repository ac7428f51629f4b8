"""`vnuma stop`: ask a run to end and restore its VMs."""

from __future__ import annotations

from typing import Annotated

import typer

from vnuma.cli.options import RunArgument, StoreOption
from vnuma.cli.screen import say


def stop(
    run: RunArgument,
    after_cell: Annotated[
        bool, typer.Option("--after-cell", help="Finish the current cell, not only the current iteration.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Ask a run to stop after its current iteration; its VMs are restored.

    Examples: vnuma stop quick.4; vnuma stop latest --after-cell
    """
    from vnuma.engine.lease.supervision import ask_to_stop

    say(ask_to_stop(run, after_cell=after_cell, url=store))
