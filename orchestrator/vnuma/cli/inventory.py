"""`vnuma inventory`: an estate in a file, to check elsewhere or later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import InventoryOption, find_inventory
from vnuma.cli.screen import say
from vnuma.cli.verb import group, subcommand
from vnuma.words.plain_text import counted
from vnuma.words.provenance import banner

app = group("Save VMs, hosts and clusters of a vCenter to a file.")


@app.callback()
def _root() -> None:
    """Save what a vCenter shows of VMs, hosts and clusters."""


@subcommand(app)
def save(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the snapshot (JSON).")],
    inventory: InventoryOption = None,
) -> None:
    """Read every vCenter of the inventory and write one snapshot, without passwords. Nothing is changed.

    Examples: vnuma inventory save estate.json; vnuma check --snapshot estate.json
    """
    from vnuma.engine.design_check import estates

    for estate in estates.save(find_inventory(inventory), file):
        if estate.simulated:
            say(banner(estate.simulated))
        clusters = sum(cluster.moid not in estate.hosts for cluster in estate.clusters)
        hosts = counted(len(estate.hosts), "host")
        say(f"{estate.source}: {counted(len(estate.vms), 'VM')}, {hosts}, {counted(clusters, 'cluster')}")
        for item in estate.unseen[:_LISTED]:
            say(f"  not seen: {item.kind} {item.name}: {item.why}")
        if len(estate.unseen) > _LISTED:
            say(f"  and {len(estate.unseen) - _LISTED} more; the file names them all")
    say(f"Snapshot   {file}")


_LISTED = 10
