"""`vnuma evidence`: read what ESXi, SQL Server or a tool in the guest printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vnuma.cli.options import TextOrJsonOption
from vnuma.cli.screen import echo, say
from vnuma.cli.shape_options import EsxiOption, ThreadsOption, hosts_of
from vnuma.errors import InputError
from vnuma.logs.pasted import decoded

if TYPE_CHECKING:
    from vnuma.logs.kinds import Reading

_MOST_BYTES = 16 * 1024 * 1024


def evidence(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text file; - reads standard input.")],
    host_nodes: Annotated[
        str | None,
        typer.Option(
            metavar="NxC[/GB][@ESXi]",
            help="The host of a vmware.log (2x16/96@8.0): compare the log with the prediction for it.",
        ),
    ] = None,
    esxi: EsxiOption = "8.0",
    threads_per_core: ThreadsOption = 2,
    format_: TextOrJsonOption = "text",
) -> None:
    """Show what pasted text says about the topology: vmware.log, sched-stats, esxtop, esxcli hardware, vsish,
    SQL Server's error log, Coreinfo, lscpu, numactl -H or lstopo.

    It begins with the conclusion: what was found, and how sure that is. With --host-nodes a vmware.log is
    compared with the prediction for its settings. It contacts no server.

    Examples: vnuma evidence vmware.log --host-nodes 2x16/96@8.0; vnuma evidence - --format json < esxtop.txt
    """
    from vnuma.logs.kinds import read_any

    text = read_text(file)
    readings = read_any(text)
    if not readings:
        what = "Standard input" if file == "-" else file
        raise InputError(
            f"{what} contains nothing that vnuma recognises as topology.",
            fix="What it reads: vnuma evidence --help",
        )
    concluded = [_conclusion(reading, host_nodes, esxi, threads_per_core) for reading in readings]
    if format_ == "json":
        found = [
            {"kind": reading.kind, "conclusion": words, **reading.figures}
            for reading, words in zip(readings, concluded, strict=True)
        ]
        document = {"schema": "vnuma/evidence/1", "readings": found}
        echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))
        return
    kinds = [reading.kind for reading in readings]
    for at, (reading, words) in enumerate(zip(readings, concluded, strict=True)):
        alike = kinds.count(reading.kind)
        echo(
            reading.kind
            if alike == 1
            else f"{reading.kind}, {kinds[: at + 1].count(reading.kind)} of {alike}"
        )
        say(f"  {words}")
        for name, value in reading.figures.items():
            say(f"  {name.replace('_', ' ')}: {_shown(value)}")


def _conclusion(reading: Reading, host: str | None, release: str, threads: int) -> str:
    """The conclusion, and for a vmware.log how it compares to the prediction."""
    from vnuma.domain.topology.evidence import conclusion

    words = conclusion(reading)
    if reading.log is None:
        return words
    if host is None:
        return f"{words} With --host-nodes it is compared with the prediction."
    from vnuma.engine.design_check.host_evidence import against_prediction

    (described,) = hosts_of([host], release, threads)
    return f"{words} {against_prediction(reading.log, described)}".rstrip()


def read_text(file: str) -> str:
    """The beginning of a file, whatever its encoding. Raises InputError."""
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
    return decoded(data)


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
