"""`vnuma setup`: install on request what a machine lacks."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def setup(
    odbc: Annotated[
        Literal["wheel"] | None,
        typer.Option(help="wheel: installs Microsoft's driver from PyPI into this environment."),
    ] = None,
) -> None:
    """Show what this machine has, or install what it lacks into this Python environment.

    Examples: vnuma setup; vnuma setup --odbc wheel
    """
    from vnuma.engine.doctor.diagnose import fetch_odbc_wheel, machine_lines

    if odbc == "wheel":
        typer.echo(
            "Fetching mssql-python-odbc: Microsoft's driver, under Microsoft's licence (not open source).",
            err=True,
        )
        fetch_odbc_wheel()
    for line in machine_lines():
        typer.echo(line)
