"""`vnuma evidence`: read what ESXi, SQL Server or a tool in the guest printed."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from vnuma.cli.screen import echo

_MOST_BYTES = 16 * 1024 * 1024


class EvidenceFormat(StrEnum):
    """What to print."""

    TEXT = "text"
    JSON = "json"


def evidence(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text file; - reads standard input.")],
    format_: Annotated[EvidenceFormat, typer.Option("--format", help="text or json.")] = EvidenceFormat.TEXT,
) -> None:
    """Show what a vmware.log, sched-stats, esxtop, error log, Coreinfo, lscpu or lstopo says about the
    topology.

    It contacts no server.

    Examples: vnuma evidence vmware.log; vnuma evidence - --format json < esxtop.txt
    """
    import json

    from vnuma.logs.kinds import read_any

    readings = read_any(read_text(file))
    if format_ is EvidenceFormat.JSON:
        found = [{"kind": reading.kind, **reading.figures} for reading in readings]
        document = {"schema": "vnuma/evidence/1", "readings": found}
        echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))
        return
    for reading in readings:
        echo(reading.kind)
        for name, value in reading.figures.items():
            echo(f"  {name.replace('_', ' ')}: {_shown(value)}")
    if not readings:
        echo("It contains nothing that vnuma recognises as topology.")


def read_text(file: str) -> str:
    """The beginning of a file, whatever its encoding. Raises InputError."""
    from vnuma.errors import InputError

    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(_MOST_BYTES)
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}.", fix="Name a readable text file."
        ) from error
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # as SQL Server writes its error log
    return data.decode("utf-16" if wide else "utf-8-sig", errors="replace")


def _shown(value: Any) -> str:
    """One line per row; sizes share one line."""
    if isinstance(value, dict):
        return "".join(f"\n    {key} = {item}" for key, item in value.items())
    if isinstance(value, tuple | list) and value and isinstance(value[0], dict | str):
        rows = (
            ", ".join(f"{key} {item}" for key, item in row.items() if item is not None)
            if isinstance(row, dict)
            else row
            for row in value
        )
        return "".join(f"\n    {row}" for row in rows)
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
