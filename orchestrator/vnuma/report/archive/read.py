"""Read a run from its archive: a private store is filled from its checked files."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

from vnuma.errors import InputError
from vnuma.report.archive.manifest import (
    FACTS,
    STUDY,
    UNREADABLE,
    check_files,
    document_in,
    not_ours,
    read_manifest,
)
from vnuma.report.archive.raw import SAMPLES_CSV, read_samples
from vnuma.report.export.results import document
from vnuma.report.model.model import load_run
from vnuma.report.page.render import page_text
from vnuma.store.facts import add_run_facts
from vnuma.store.one_run import store_of_rows
from vnuma.store.open import Store
from vnuma.store.runs import IMPORTED, get_run


def open_archive(path: Path) -> tuple[Store, str]:
    """A private store with the archive's run, and the run's name.

    Raises InputError for a file that cannot be read, that is not what its manifest says, or that holds what
    vnuma does not write.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = read_manifest(archive, path.name)
            check_files(archive, manifest.files, path.name)
            store = _filled(archive, path.name)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(
                f"The archive {path} cannot be read ({error.strerror}).", fix="Check its path."
            ) from error
        raise not_ours(path.name, str(error)) from error
    with store.write() as connection:
        run = get_run(connection, "latest")
        origin = {"file": path.name, "run": run.name, "product_version": manifest.product_version}
        add_run_facts(connection, run.id, IMPORTED, {"archive": origin})
    _refuse_odd(store, path.name)
    return store, run.name


def _filled(archive: zipfile.ZipFile, name: str) -> Store:
    rows = document_in(archive, FACTS)
    study, run = _only(rows, "study"), _only(rows, "run")
    with archive.open(STUDY) as file:
        study["yaml"] = file.read().decode("utf-8")
    if run.get("name") != f"{study.get('name')}.{run.get('number')}":
        raise ValueError("the name of its run is not STUDY.NUMBER")
    try:
        with archive.open(SAMPLES_CSV) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
            return store_of_rows(name, rows, read_samples(text, rows))
    except csv.Error as error:
        raise ValueError(f"{SAMPLES_CSV}: {error}") from error


def _only(rows: Any, table: str) -> dict[str, Any]:
    """The one row of a table in facts.json."""
    found = rows.get(table) if isinstance(rows, dict) else None
    if not (isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict)):
        raise ValueError(f"{FACTS} does not have one {table}")
    return found[0]


def _refuse_odd(store: Store, name: str) -> None:
    """Analyse the run and make its page once, so that odd content is found before anything is shown.

    Values are checked one by one when the store is filled; here any error is due to their combination.
    """
    try:
        loaded = load_run(store, "latest")
        page_text(loaded)
        document(loaded)
    except Exception as error:
        raise not_ours(name, f"it cannot be analysed ({type(error).__name__}: {str(error)[:200]})") from error
    if loaded.study.name != loaded.run.study_name:
        raise not_ours(name, "its study file has another name than its run")
