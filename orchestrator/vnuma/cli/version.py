"""`vnuma version`: versions of everything that results, stores and bug reports depend on."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from vnuma.cli.screen import echo


class VersionFormat(StrEnum):
    """What to print."""

    TEXT = "text"
    JSON = "json"


def version(
    format_: Annotated[VersionFormat, typer.Option("--format", help="text or json.")] = VersionFormat.TEXT,
) -> None:
    """Show what this machine has: vnuma, Python, the lab's program, the ODBC driver, store and audit log.

    JSON also has the method of analysis, the store's schema, SQLite, and the packages that matter.

    Examples: vnuma version; vnuma version --format json
    """
    from vnuma.engine.doctor.this_machine import machine_document, machine_lines

    if format_ is VersionFormat.JSON:
        echo(json.dumps(machine_document(), indent=2))
        return
    for line in machine_lines():
        echo(line)
