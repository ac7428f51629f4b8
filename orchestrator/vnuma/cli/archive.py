"""`vnuma export` and `vnuma import`: a run in one file, to keep, send and analyse again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import RunArgument, StoreOption, opened_store
from vnuma.cli.screen import echo, say
from vnuma.domain.vm.provenance import banner


def export(
    run: RunArgument = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="RUN.vnuma.zip by default.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write a finished run into one file: raw data (CSV, Parquet), tables, charts, report, and its store.

    The archive names VMs, hosts and users; it contains no passwords.

    Examples: vnuma export quick.4; vnuma export quick.4 -o /backup/quick.4.zip
    """
    from vnuma.report.archive.raw import HELP, parquet_possible
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
        say(f"Parquet    left out: pyarrow is missing. samples.csv has the same data. {HELP}")
    say(f"Elsewhere  vnuma import {path.name}")


def import_(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A file written by vnuma export.")],
    store: StoreOption = None,
) -> None:
    """Check an archive, import its run, analyse it again and compare the figures.

    An imported run was measured elsewhere, so it cannot be resumed and its VMs cannot be restored.

    Examples: vnuma import quick.4.vnuma.zip; vnuma import FILE --store sqlite:///other.db
    """
    from vnuma.report.archive.read import import_run
    from vnuma.report.model.model import load_run

    opened = opened_store(store, create=True)
    found = import_run(opened, archive)
    loaded = load_run(opened, found.run)
    if loaded.simulated:
        echo(banner(loaded.simulated))
    renamed = "" if found.run == found.archived_as else f" (archived as {found.archived_as})"
    say(f"Imported   {found.run}{renamed}: {len(found.manifest.files)} files, unchanged since export")
    if found.differences:
        say(
            f"Figures    {len(found.differences)} differ from those in the archive, written by vnuma "
            f"{found.manifest.product_version}; first: {found.differences[0]}"
        )
    else:
        say("Figures    analysed again: identical to those in the archive")
    say(f"Report     vnuma report {found.run}")
