"""`vnuma import`: check an archive, copy its run into a store, and compare the figures."""

from __future__ import annotations

import math
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.report.archive.manifest import (
    RESULTS,
    STORE,
    UNREADABLE,
    Manifest,
    check_files,
    document_in,
    read_manifest,
)
from vnuma.report.export.results import document
from vnuma.report.model.model import load_run
from vnuma.report.page.render import page_text
from vnuma.store import attempts, cells, facts, runs, vms
from vnuma.store.copy_rows import copy_run
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import CellState, Run
from vnuma.store.runs import IMPORTED
from vnuma.store.untrusted import refuse_foreign_content

TOLERANCE = 1e-9
"""Relative: figures from another machine may differ in the last bits."""


@dataclass(frozen=True)
class Imported:
    """`run` is its name here; `differences` are figures that differ from the archive's."""

    run: str
    archived_as: str
    manifest: Manifest
    differences: tuple[str, ...]


def import_run(store: Store, path: Path) -> Imported:
    """Copy the archive's run into the store. Raises InputError for a damaged file, or a run already here."""
    with tempfile.TemporaryDirectory() as temporary:
        manifest, archived = _unpack(path, Path(temporary))
        refuse_foreign_content(Path(temporary) / STORE, path.name, manifest.store_schema)
        inner = open_store(default_url(Path(temporary)), create=False)
        recomputed = _analysed(inner, path.name)
        with inner.read() as source, store.write() as target:
            run = _only_run(source, path.name)
            here = runs.same_run(target, run)
            if here is not None:
                raise InputError(
                    f"This store has that run already: {here.name}, of {here.created_at:%Y-%m-%d %H:%M} UTC.",
                    fix=f"vnuma report {here.name}",
                )
            name, number = runs.free_name(target, run)
            new = copy_run(source, target, run.id, name=name, number=number)
            origin = {"file": path.name, "run": run.name, "product_version": manifest.product_version}
            facts.add_run_facts(target, new, IMPORTED, {"archive": origin})
    return Imported(name, run.name, manifest, tuple(differences(archived, recomputed)))


def _only_run(source: Connection, archive: str) -> Run:
    """The archive's run, which must have ended and have a valid name."""
    every = runs.list_runs(source)
    if len(every) != 1:
        raise _odd(archive, f"it holds {len(every)} runs, not one")
    (run,) = every
    study = runs.get_study(source, run.study_id)
    if run.study_name != study.name or run.name != f"{study.name}.{run.number}" or run.number < 1:
        raise _odd(archive, "the name of its run is not STUDY.NUMBER")
    if parse_study(study.yaml, f"study of {run.name}").name != study.name:
        raise _odd(archive, "its study file has another name than its run")
    claimed = [cell for cell in cells.cells_of_run(source, run.id) if cell.state is CellState.CLAIMED]
    begun = [one for one in attempts.attempts_of_run(source, run.id) if one.ended_at is None]
    away = [vm for vm in vms.vms_of_run(source, run.id) if not vm.at_baseline]
    if not run.state.ended or claimed or begun or away:
        raise _odd(archive, "its run is not over, and archives are made of runs that are")
    return run


def _analysed(store: Store, archive: str) -> dict[str, Any]:
    """The archive's results, recomputed by this version. Raises InputError for invalid content.

    Any error here is the content's fault: its values were checked one by one, but not in combination.
    """
    try:
        loaded = load_run(store, "latest")
        page_text(loaded)  # finds facts that no report can show before the import
        return document(loaded)
    except Exception as error:
        raise _odd(archive, f"it cannot be analysed ({type(error).__name__}: {str(error)[:200]})") from error


def _odd(archive: str, why: str) -> InputError:
    return InputError(
        f"{archive} is not an archive that vnuma wrote: {why}.",
        fix="Export it again where it was measured: vnuma export RUN. Nothing was imported.",
    )


def _unpack(path: Path, folder: Path) -> tuple[Manifest, dict[str, Any]]:
    """Check the whole archive, then extract its store; returns the manifest and the archived results."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = read_manifest(archive, path.name)
            check_files(archive, manifest, path.name)
            with archive.open(STORE) as inside, (folder / STORE).open("wb") as outside:
                shutil.copyfileobj(inside, outside)
            return manifest, _results(archive, path.name)
    except OSError as error:
        raise InputError(
            f"The archive {path} cannot be read ({error.strerror or error}).", fix="Check its path."
        ) from error
    except UNREADABLE as error:
        raise InputError(
            f"{path.name} is not an archive of vnuma, or only part of one ({error}).",
            fix="Copy it again from where it was made: vnuma export RUN. Nothing was imported.",
        ) from error


def _results(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        results = document_in(archive, RESULTS)
    except (KeyError, ValueError) as error:
        raise _odd(name, f"{RESULTS} cannot be read ({error})") from error
    if not isinstance(results, dict):
        raise _odd(name, f"{RESULTS} is not a document")
    return results


def differences(archived: dict[str, Any], recomputed: dict[str, Any]) -> list[str]:
    """Paths at which two result documents have different figures or verdicts."""
    found: list[str] = []
    for part in ("arms", "recommended", "analyses"):
        _compare(part, archived.get(part), recomputed.get(part), found)
    return found


def _compare(place: str, before: Any, after: Any, found: list[str]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        # A newer version may add keys, but each archived one must be there.
        for key, value in before.items():
            _compare(f"{place}.{key}", value, after.get(key), found)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            _compare(f"{place}[{number}]", one, other, found)
    elif isinstance(before, float) and isinstance(after, int | float):
        if not math.isclose(before, after, rel_tol=TOLERANCE, abs_tol=1e-12):
            found.append(f"{place}: {before!r} became {after!r}")
    elif before != after:
        found.append(f"{place}: {before!r} became {after!r}")
