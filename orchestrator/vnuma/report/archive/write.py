"""`vnuma export`: one zip with a run's rows, samples, study, plan, tables, charts, report and a manifest."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from vnuma import __version__
from vnuma.domain.study.order import SCOPE
from vnuma.errors import InputError
from vnuma.report.archive.raw import dictionary, write_samples
from vnuma.report.archive.read import (
    FACTS,
    FORMAT,
    NAME,
    STUDY,
    Entry,
    Manifest,
    is_archive,
    refuse_large,
    sha256_of,
)
from vnuma.report.charts.pictures import pictures, plain, write_picture
from vnuma.report.export.results import as_json, results_schema
from vnuma.report.model import grid
from vnuma.report.model.grid import GridTable
from vnuma.report.model.methods import methods, scope
from vnuma.report.model.model import LoadedRun
from vnuma.report.page.render import page_text
from vnuma.report.tables.csv_export import TABLES
from vnuma.report.tables.paper_table import paper_table
from vnuma.report.tables.secondary import named_figures, waits_grids
from vnuma.store.one_run import rows_of
from vnuma.store.open import Store
from vnuma.store.rows import CellState
from vnuma.words.plain_text import listed
from vnuma.words.provenance import banner, kind


def default_path(loaded: LoadedRun) -> Path:
    """RUN.vnuma.zip in the current folder; archives of the lab's runs have `simulated` in their name."""
    return Path(f"{loaded.file_stem}.vnuma.zip")


def export_run(store: Store, loaded: LoadedRun, path: Path) -> Manifest:
    """Write the archive. Raises InputError for an unfinished run, and for a file that exists or cannot be
    written.
    """
    refuse_unfinished(loaded)
    if not is_archive(str(path)):
        raise InputError(
            f"{path} is not a valid name of an archive: commands know one by its ending.",
            fix=f"-o {path}.vnuma.zip",
        )
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
    plan = {fact.key: fact.value for fact in loaded.facts if fact.scope == SCOPE}
    texts = {
        "README.md": _readme(loaded),
        STUDY: loaded.study_text,
        FACTS: _facts(store, loaded),
        **({"plan.json": json.dumps(plan, indent=2) + "\n"} if plan else {}),
        "report.html": page_text(loaded),
        "results.json": as_json(loaded),
        **{f"{name}.csv": table.of(loaded) for name, table in TABLES.items()},
        "results.schema.json": results_schema(),
        "columns.md": dictionary(),
        "methods.md": _methods(loaded),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    write_samples(store, loaded, folder)
    _tables(loaded, folder / "tables")
    (folder / "charts").mkdir()
    for name, svg in pictures(loaded):
        write_picture(folder / "charts", name, svg)


def _facts(store: Store, loaded: LoadedRun) -> str:
    """The run's rows; the study's text is study.yml."""
    with store.read() as connection:
        rows = rows_of(connection, loaded.run.id)
    studies = [{**study, "yaml": None} for study in rows["study"]]
    text = json.dumps({**rows, "study": studies}, allow_nan=False)
    try:
        refuse_large(text.encode(), FACTS)
    except ValueError as error:
        raise InputError(
            f"{loaded.run.name} is too large for an archive: {error}.",
            fix="vnuma store copy copies a whole store.",
        ) from error
    return text


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
    return Manifest(FORMAT, loaded.run.name, loaded.simulated is not None, __version__, tuple(entries))


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


def _readme(loaded: LoadedRun) -> str:
    run, study = loaded.run, loaded.study
    simulated = banner(loaded.simulated)
    return f"""\
# {run.name}: {study.title or study.name}
{f"{chr(10)}**{simulated}**{chr(10)}" if simulated else ""}
A vNUMA study of {listed(study.vms)}, measured by vnuma {run.product_version}, begun
{run.created_at:%Y-%m-%d %H:%M} UTC, {run.state}. Study file sha256 {loaded.study_sha256}.

| file | what it is |
| --- | --- |
| report.html | the report; needs no network |
| study.yml | the study file as it was run |
| plan.json | the plan that was declared before the first boot, with its hash |
| samples.csv, samples.parquet | every iteration, warm-ups included; Parquet only where pyarrow was |
| facts.json | run, VMs, cells, attempts and facts: hardware, versions, settings, boots |
| results.json, results.schema.json | every figure, unrounded, and the document's schema |
| results.csv, figures.csv, waits.csv | the comparisons, other figures and waits, one line a value |
| columns.md | what the columns of those files are, with units |
| tables/ | Table 1 in the paper's layout, other figures and waits by arm: CSV, Markdown, LaTeX |
| charts/ | every chart: SVG, PNG, PDF; a .txt says why one is missing |
| methods.md | how the figures came about, to be quoted |
| manifest.json | a checksum (SHA-256) of every file |

The archive names VMs, hosts and the people who changed a VM. It holds no password.
The checksums show damage and careless changes; they do not prove who made the archive.

## To read and analyse it

vnuma computes every figure and verdict again from study.yml, facts.json and samples.csv:

    vnuma results THIS_FILE
    vnuma report THIS_FILE
    vnuma compare THIS_FILE RUN

## To do the study again

1. Install vnuma {run.product_version}, and unpack this file: `python -m zipfile -e THIS_FILE FOLDER`
2. {_place(loaded)}
3. In that folder, see what it would change, and for how long: `vnuma plan study.yml`
4. Run it; the seed in study.yml ({run.seed}) gives the same order of cells: `vnuma run study.yml`
5. Compare the new run, whose name vnuma run prints, with this one: `vnuma compare THIS_FILE NEW_RUN`
"""


def _place(loaded: LoadedRun) -> str:
    """How the reader gets an environment to measure in."""
    if loaded.simulated and kind(loaded.simulated) == "simulated":
        return f"Start the lab that it was measured on: `vnuma lab up {loaded.simulated}`"
    return f"Write an inventory with {listed(loaded.study.vms)}: `vnuma init`"
