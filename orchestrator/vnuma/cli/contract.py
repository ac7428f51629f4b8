"""`vnuma contract`: what vnuma believes of SQL Server, and whether it is so on a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import InventoryOption, inventory_of
from vnuma.cli.screen import echo, say


def contract(
    sql: Annotated[
        str | None, typer.Option("--sql", metavar="HOST", help="Ask this host's SQL Server (inventory name).")
    ] = None,
    inventory: InventoryOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write what was seen, without names, as JSON."),
    ] = None,
) -> None:
    """List what vnuma believes of SQL Server, or ask a server whether it is so. Exit code 4 when one differs.

    --sql makes the database vnuma_contract there and drops it afterwards. No setting is changed.

    Examples: vnuma contract; vnuma contract --sql sql16 -i inventory --output contract.json
    """
    from vnuma.errors import EnvironmentProblem, UsageError

    if sql is None:
        if output:
            raise UsageError(
                "--output is what a server answered.", fix="vnuma contract --sql HOST --output FILE"
            )
        from vnuma.sqlserver.contract.page import markdown

        typer.echo(markdown(), nl=False)
        return
    from vnuma.engine.access.connections import sql_server
    from vnuma.engine.access.inventory import named_targets
    from vnuma.sqlserver.contract.belief import Verdict
    from vnuma.sqlserver.contract.judge import judge

    target = named_targets(inventory_of(inventory, [sql]), [sql])[sql]
    judged = judge(sql_server(target.in_vcenter()))
    for one in judged.beliefs:
        say(f"{one.verdict:13} {one.belief.id}: {one.seen}")
    if output:
        _write(output, judged.document())
        echo(f"Wrote {output}: names, addresses and accounts are left out.")
    differing = judged.count(Verdict.DIFFERS)
    closing = (
        f"{judged.count(Verdict.HELD)} held, {differing} differ, "
        f"{judged.count(Verdict.NOT_EVALUABLE)} not evaluable."
    )
    if differing:
        raise EnvironmentProblem(
            closing, fix=f"Report it with the file: vnuma contract --sql {sql} --output contract.json"
        )
    echo(f"{closing} {judged.left}")


def _write(path: Path, document: object) -> None:
    from vnuma.errors import InputError

    try:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}).", fix="Name another file.") from error
