"""`vnuma init`: write an inventory for your own vCenter."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.screen import say


def init(
    folder: Annotated[Path, typer.Option("--folder", help="Where to write.")] = Path("inventory"),
    vcenter: Annotated[
        str,
        typer.Option(
            prompt="vCenter or ESXi host", help="Its name or address; vc1:8443 for another port than 443."
        ),
    ] = "",
    proxy: Annotated[
        str,
        typer.Option("--proxy", metavar="HOST:PORT", help="A proxy to it by HTTP CONNECT, without a login."),
    ] = "",
    user: Annotated[str, typer.Option(prompt="User", help="As in vnuma@vsphere.local.")] = "",
    ca_file: Annotated[
        str, typer.Option(prompt="File with the CA certificate (empty: the system's)", help="PEM file.")
    ] = "",
    vm: Annotated[str, typer.Option(prompt="VM, by name or inventory path", help="A test clone.")] = "",
    sql_host: Annotated[
        str, typer.Option(prompt="SQL Server in it (host name)", help="Host name or address.")
    ] = "",
    sql_user: Annotated[
        str, typer.Option(prompt="SQL login", help="A login with VIEW SERVER STATE.")
    ] = "vnuma",
    sql_ca_file: Annotated[
        str,
        typer.Option(
            prompt="File with the CA of SQL Server's certificate (empty: the system's)", help="PEM file."
        ),
    ] = "",
    test_clone: Annotated[
        bool,
        typer.Option("--test-clone/--no-test-clone", prompt="Is the VM a test clone", help="Not production."),
    ] = False,
) -> None:
    """Write an inventory with references to passwords, never passwords themselves.

    Examples: vnuma init; vnuma init --vcenter vc1 --user u --vm sql16 --sql-host sql16 --test-clone
    """
    from vnuma.engine.access.new_inventory import Answers, write_inventory

    answers = Answers(vcenter, user, ca_file, vm, sql_host, sql_user, test_clone, sql_ca_file, proxy)
    path = write_inventory(folder, answers)
    typer.echo(f"Wrote {path}.")
    typer.echo("Passwords are read from the environment:")
    typer.echo("  read -rs VNUMA_VCENTER_PASSWORD && export VNUMA_VCENTER_PASSWORD")
    typer.echo("  read -rs VNUMA_SQL_PASSWORD && export VNUMA_SQL_PASSWORD")
    say(f"Next: vnuma doctor -i {shlex.quote(str(folder))}")
