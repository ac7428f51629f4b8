"""`vnuma site`: nodes of a Receptor mesh, for VMs that the controller cannot reach."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.screen import echo, note
from vnuma.cli.verb import verb

app = typer.Typer(help="Set up nodes of a Receptor mesh that reach the VMs of other sites.")


@app.command("init")
@verb
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The node's name in the mesh: site-b.")],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Begin a mesh: NAME is its controller, dialled here."
        ),
    ] = None,
    store_at: Annotated[
        str | None,
        typer.Option(
            "--store-at",
            metavar="HOST:PORT",
            help="With --listen: nodes reach this PostgreSQL through the mesh.",
        ),
    ] = None,
    at: Annotated[
        Path | None,
        typer.Option("--at", metavar="FOLDER", help="Where the files will be on the node [/etc/vnuma/NAME]."),
    ] = None,
    program: Annotated[
        Path, typer.Option("--program", metavar="FILE", help="The command vnuma on the node.")
    ] = Path("/usr/local/bin/vnuma"),
) -> None:
    """Write a node's Receptor configuration, certificate, keys, environment file and systemd unit.

    Only you can read them, and no file is overwritten. The first call begins the mesh; see docs/sites.md.

    Examples: vnuma site init controller --listen hq.example.com:27199 --store-at 127.0.0.1:5432;
    vnuma site init site-b
    """
    from vnuma import assets
    from vnuma.engine.mesh.node_config import Node
    from vnuma.engine.mesh.node_files import init_controller, init_node
    from vnuma.errors import UsageError

    base = assets.home() / "mesh"
    if listen is None:
        if store_at:
            raise UsageError(
                "--store-at needs --listen.", fix="It is the controller that forwards to the store."
            )
        folder = init_node(base, Node(name, at or Path("/etc/vnuma") / name, str(program)))
        echo(f"Wrote {folder}")
        there = at or Path("/etc/vnuma") / name
        note(
            f"Next      move it to {there} on the node, and give its VMs vnuma_node: {name} in the inventory"
        )
        note(f"          vnuma doctor --site {name}")
        return
    folder = init_controller(base, Node(name, at or base / name, str(program)), listen, store_at)
    echo(f"Wrote {folder}")
    note(f"Next      receptor --config {folder / 'receptor.yml'}    vnuma site init site-b")


@app.command("answer", hidden=True)
@verb
def answer() -> None:
    """Do what the controller asks on standard input: what the node's Receptor daemon starts.

    Examples: vnuma site answer < request.json
    """
    from vnuma.engine.sites import answering
    from vnuma.errors import InputError

    try:
        request = json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"The request is not JSON ({error}).", fix="Only the controller asks: vnuma doctor --site NAME"
        ) from None
    sys.stdout.write(json.dumps(answering.answer(request)) + "\n")
