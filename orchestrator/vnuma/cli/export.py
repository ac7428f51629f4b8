"""`vnuma export`: a run in one file, to keep, send and analyse again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import RunArgument, StoreOption, opened_store
from vnuma.cli.screen import echo, say
from vnuma.errors import adding
from vnuma.words.provenance import banner


def export(
    run: RunArgument = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="RUN.vnuma.zip by default.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write a finished run into one file: raw data (CSV, Parquet), facts, tables, charts, report.

    results, report, compare and power read the file wherever it is. It names VMs, hosts and users; it
    contains no passwords.

    Examples: vnuma export quick.4; vnuma export quick.4 -o /backup/quick.4.zip
    """
    from vnuma.report.archive.raw import parquet_possible
    from vnuma.report.archive.write import default_path, export_run
    from vnuma.report.model.model import load_run

    opened = opened_store(store)
    loaded = load_run(opened, run)
    path = output or default_path(loaded)
    manifest = export_run(opened, loaded, path)
    if loaded.simulated:
        echo(banner(loaded.simulated))
    size = sum(entry.bytes for entry in manifest.files) / 1e6
    say(f"Archive    {path}: {len(manifest.files)} files, {size:.1f} MB unpacked")
    if not parquet_possible():
        say(f"Parquet    left out: pyarrow is missing. samples.csv has the same data. {adding('pyarrow')}")
    say(f"Elsewhere  vnuma results {shlex.quote(path.name)}")
