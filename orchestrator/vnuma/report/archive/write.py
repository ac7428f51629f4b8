"""`vnuma export`: one zip with the run's own store, raw data, tables, charts, report and a manifest."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from vnuma import __version__
from vnuma.errors import InputError
from vnuma.report.archive.manifest import FORMAT, NAME, RESULTS, Entry, Manifest, sha256_of
from vnuma.report.archive.raw import dictionary, write_samples
from vnuma.report.archive.rerun_guide import inventory, inventory_name, readme, versions
from vnuma.report.charts.pictures import pictures, plain
from vnuma.report.export.results import as_json, results_schema
from vnuma.report.model import grid
from vnuma.report.model.grid import GridTable
from vnuma.report.model.methods import methods, scope
from vnuma.report.model.model import LoadedRun
from vnuma.report.page.render import page_text
from vnuma.report.tables.csv_export import TABLES
from vnuma.report.tables.paper_table import paper_table
from vnuma.report.tables.secondary import named_figures, waits_grids
from vnuma.store.copy_rows import copy_run
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import CellState
from vnuma.store.schema import HEAD


def default_path(loaded: LoadedRun) -> Path:
    """RUN.vnuma.zip in the current folder; archives of the lab's runs have `simulated` in their name."""
    return Path(f"{loaded.file_stem}.vnuma.zip")


def export_run(store: Store, loaded: LoadedRun, path: Path) -> Manifest:
    """Write the archive. Raises InputError for an unfinished run, and for a file that exists or cannot be
    written.
    """
    refuse_unfinished(loaded)
    if path.exists():
        raise InputError(
            f"The archive {path} exists already.", fix="Name another file (-o FILE), or remove it."
        )
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            _fill(store, loaded, folder)
            manifest = _manifest(loaded, folder)
            (folder / NAME).write_text(manifest.as_json(), encoding="utf-8")
            _zip(folder, manifest, path)
    except OSError as error:
        raise InputError(
            f"The archive {path} cannot be written ({error.strerror}).", fix="Name another file: -o FILE"
        ) from error
    return manifest


def refuse_unfinished(loaded: LoadedRun) -> None:
    """Refuse a run that may change: it has not ended, or VMs are not restored."""
    name = loaded.run.name
    if not loaded.run.state.ended or any(cell.state is CellState.CLAIMED for cell in loaded.cells):
        raise InputError(
            f"{name} is {loaded.run.state}: an archive is made of a run that has ended.",
            fix=f"vnuma report {name} shows it as it is now; vnuma stop {name} ends it. If its process "
            f"died: vnuma run --resume {name}",
        )
    owed = [vm.name for vm in loaded.vms if not vm.at_baseline]
    if owed:
        raise InputError(
            f"{', '.join(owed)} of {name} is not at its baseline yet: the run is not over.",
            fix=f"vnuma restore {owed[0]}",
        )


def _fill(store: Store, loaded: LoadedRun, folder: Path) -> None:
    """Write every file except the manifest."""
    copy = open_store(default_url(folder))
    with store.read() as source, copy.write() as target:
        copy_run(source, target, loaded.run.id, name=loaded.run.name, number=loaded.run.number)
    texts = {
        "README.md": readme(loaded),
        "study.yml": loaded.study_text,
        inventory_name(loaded): inventory(loaded),
        "versions.json": versions(loaded),
        "report.html": page_text(loaded),
        RESULTS: as_json(loaded),
        **{f"{name}.csv": table.of(loaded) for name, table in TABLES.items()},
        "results.schema.json": results_schema(),
        "columns.md": dictionary(),
        "methods.md": _methods(loaded),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_samples(store, loaded, folder)
    _tables(loaded, folder / "tables")
    _charts(loaded, folder / "charts")


def _tables(loaded: LoadedRun, folder: Path) -> None:
    folder.mkdir()
    for name, table in named_tables(loaded):
        for ending, render in (("csv", grid.as_csv), ("md", grid.as_markdown), ("tex", grid.as_latex)):
            (folder / f"{name}.{ending}").write_text(render(table), encoding="utf-8")


def named_tables(loaded: LoadedRun) -> Iterator[tuple[str, GridTable]]:
    """Table 1 of every analysis, then each VM's other figures and its arms' waits."""
    for analysis in loaded.result.analyses:
        if analysis.points:
            stem = f"{analysis.vm}-{analysis.form}-{analysis.metric}"
            yield plain(stem), paper_table(loaded, analysis)
    for vm in loaded.study.vms:
        for name, table in named_figures(loaded, vm):
            yield plain(f"{vm}-{name}"), table
        for number, table in enumerate(waits_grids(loaded, vm), start=1):
            yield plain(f"{vm}-waits-{number}"), table


def _charts(loaded: LoadedRun, folder: Path) -> None:
    folder.mkdir()
    for picture in pictures(loaded):
        picture.write(folder)


def _methods(loaded: LoadedRun) -> str:
    parts = [f"# How the figures of {loaded.run.name} came about\n"]
    for vm, analysis in loaded.primary:
        parts += [scope(loaded, vm, analysis) + "\n", methods(loaded, vm, analysis) + "\n"]
    return "\n".join(parts)


def _manifest(loaded: LoadedRun, folder: Path) -> Manifest:
    entries = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as opened:
            entries.append(Entry(file.relative_to(folder).as_posix(), *sha256_of(opened)))
    return Manifest(FORMAT, loaded.run.name, loaded.simulated is not None, __version__, HEAD, tuple(entries))


def _zip(folder: Path, manifest: Manifest, path: Path) -> None:
    """Write next to the target and rename, so that no partial archive has the archive's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (NAME, *(entry.path for entry in manifest.files)):
                archive.write(folder / name, name)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
