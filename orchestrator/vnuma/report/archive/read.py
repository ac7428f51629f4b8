"""`vnuma import`: check an archive, bring its run into a store, and compare the figures."""

from __future__ import annotations

import json
import math
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.errors import InputError
from vnuma.report.archive.manifest import Manifest, check_files, read_manifest
from vnuma.report.archive.write import RESULTS, STORE
from vnuma.report.json_export import document
from vnuma.report.model import load_run
from vnuma.store import facts, runs
from vnuma.store.copy import copy_run
from vnuma.store.facts import IMPORTED
from vnuma.store.open import Store, default_url, open_store

TOLERANCE = 1e-9
"""Relative: figures of another machine may differ in the last bits of their arithmetic."""


@dataclass(frozen=True)
class Imported:
    """`run` is its name here; `differences` are figures that did not come out as in the archive."""

    run: str
    archived_as: str
    manifest: Manifest
    differences: tuple[str, ...]


def import_run(store: Store, path: Path) -> Imported:
    """Bring the archive's run into the store. InputError for a file that is not whole, or already here."""
    with tempfile.TemporaryDirectory() as temporary:
        manifest, archived = _unpack(path, Path(temporary))
        inner = open_store(default_url(Path(temporary)), create=False)
        with inner.read() as source, store.write() as target:
            run = runs.get_run(source, "latest")
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
    again = document(load_run(store, name))
    return Imported(name, run.name, manifest, tuple(differences(archived, again)))


def _unpack(path: Path, folder: Path) -> tuple[Manifest, dict[str, Any]]:
    """Check the whole archive, then take the store out of it; the results as they were."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = read_manifest(archive, path.name)
            check_files(archive, manifest, path.name)
            (folder / STORE).write_bytes(archive.read(STORE))
            return manifest, json.loads(archive.read(RESULTS))
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{path.name} is not an archive of vnuma, or only part of one ({error}).",
            fix="Copy it again from where it was made: vnuma export RUN. Nothing was imported.",
        ) from error
    except OSError as error:
        raise InputError(
            f"The archive {path} cannot be read ({error.strerror}).", fix="Check its path."
        ) from error


def differences(archived: dict[str, Any], again: dict[str, Any]) -> list[str]:
    """Where two result documents do not give the same figures and verdicts, as paths into them."""
    found: list[str] = []
    for part in ("arms", "recommended", "analyses"):
        _compare(part, archived.get(part), again.get(part), found)
    return found


def _compare(place: str, before: Any, after: Any, found: list[str]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        # A newer product may say more; what the archive says must be said again.
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
