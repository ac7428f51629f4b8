"""Read a run from its archive: a private store is filled from its checked files."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vnuma import __version__
from vnuma.errors import InputError
from vnuma.report.archive.raw import SAMPLES_CSV, read_samples
from vnuma.report.export.results import document
from vnuma.report.model.model import load_run
from vnuma.report.page.render import page_text
from vnuma.store.facts import add_run_facts
from vnuma.store.one_run import store_of_rows
from vnuma.store.open import Store
from vnuma.store.runs import IMPORTED, get_run
from vnuma.words.bounded_json import read_json
from vnuma.words.plain_text import escaped, refuse_controls

NAME = "manifest.json"
KIND = "vnuma/archive"
FORMAT = 2
"""Raised when the previous version can no longer read an archive. Format 1 had a SQLite file inside."""

FACTS = "facts.json"
STUDY = "study.yml"
REQUIRED = (FACTS, STUDY, "samples.csv")
"""Files from which a run is read; all others are derived from them."""

MOST_UNPACKED = 512_000_000
"""Most bytes of all files together. The largest study so far needs less than a tenth."""

MOST_FILES = 5_000
MOST_DOCUMENT = 32_000_000
"""Most bytes of a JSON document. An attempt takes about 8,000."""

MOST_VALUES = 2_000_000
"""Most values of a JSON document, each of which takes up to 100 bytes in memory."""

_CHUNK = 1 << 20


UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)
"""Errors from reading a damaged zip: RuntimeError and NotImplementedError for encryption and unknown
compression, ValueError for invalid names and sizes.
"""


@dataclass(frozen=True)
class Entry:
    """One file of the archive."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What an archive is, and its files with their checksums."""

    format: int
    run: str
    simulated: bool
    product_version: str
    files: tuple[Entry, ...]

    def as_json(self) -> str:
        """The file's text."""
        return json.dumps({"kind": KIND, **asdict(self)}, indent=2) + "\n"


def is_archive(name: str) -> bool:
    """Whether it names an archive and not a run, whose name ends in a number."""
    return name.lower().endswith(".zip")


def sha256_of(file: Any) -> tuple[int, str]:
    """Length and SHA-256 of an open binary file."""
    digest, length = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        length += len(chunk)
    return length, digest.hexdigest()


def read_manifest(archive: zipfile.ZipFile, name: str) -> Manifest:
    """The manifest of an open archive. Raises InputError if it is missing or has another format."""
    document = manifest_document(archive, name)
    try:
        _refuse_other_format(document["format"], document["product_version"], name)
        files = tuple(Entry(str(one["path"]), one["bytes"], one["sha256"]) for one in document["files"])
        return Manifest(**{field.name: document[field.name] for field in fields(Manifest)} | {"files": files})
    except (KeyError, TypeError) as error:
        raise not_ours(name, f"its manifest has an error, {error}") from error


def manifest_document(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """The manifest of any format. Raises InputError."""
    _refuse_bomb(archive, name)
    try:
        document = document_in(archive, NAME)
    except (KeyError, *UNREADABLE) as error:
        raise not_ours(name, str(error)) from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise not_ours(name, f"its manifest is not of the kind {KIND}")
    return document


def _refuse_other_format(number: int, writer: str, name: str) -> None:
    if number < FORMAT:
        raise InputError(
            f"{name} was written by vnuma {writer} in archive format {number}, with a SQLite file inside.",
            fix=f"In a checkout of vnuma: python -m tools.convert_archive {name} NEW.vnuma.zip",
        )
    if number > FORMAT:
        raise InputError(
            f"{name} was written by vnuma {writer} in archive format {number}; "
            f"vnuma {__version__} reads format {FORMAT}.",
            fix=f"Install vnuma {writer} or newer.",
        )


def document_in(archive: zipfile.ZipFile, path: str) -> Any:
    """A JSON document of an open archive. Raises ValueError, KeyError, or one of `UNREADABLE`."""
    with archive.open(path) as file:
        text = file.read(MOST_DOCUMENT + 1)
    refuse_large(text, path)
    return read_json(text, most_bytes=MOST_DOCUMENT)


def refuse_large(text: bytes, path: str) -> None:
    """Raise ValueError for a document that takes too much memory to read; nothing is parsed."""
    if len(text) > MOST_DOCUMENT:
        raise ValueError(f"{path} is larger than {MOST_DOCUMENT / 1e6:g} MB")
    if sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ValueError(f"{path} has more than {MOST_VALUES:,} values")


def _refuse_bomb(archive: zipfile.ZipFile, name: str) -> None:
    """Check the sizes in the zip's directory, at which reading stops whatever the file contains."""
    entries = archive.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MOST_UNPACKED or len(entries) > MOST_FILES:
        raise InputError(
            f"{name} unpacks to {len(entries):,} files with {unpacked / 1e6:,.0f} MB: archives of vnuma have "
            f"at most {MOST_FILES:,} files with {MOST_UNPACKED / 1e6:,.0f} MB.",
            fix=_AGAIN,
        )


def check_files(
    archive: zipfile.ZipFile, entries: Sequence[Entry], name: str, required: Sequence[str] = REQUIRED
) -> None:
    """Raise InputError unless exactly these entries are there, unaltered; names the first bad one."""
    names = Counter(info.filename for info in archive.infolist())
    for path, times in names.items():
        if not _inside(path) or times > 1:
            raise InputError(f"{name} has an invalid entry, {escaped(path)!r}.", fix=_AGAIN)
    present = set(names) - {NAME}
    expected = {entry.path: entry for entry in entries}
    for path in sorted(present ^ set(expected)):
        words = "is not in its manifest" if path in present else "is missing"
        raise InputError(f"{path} {words} in {name}: it was changed after the export.", fix=_AGAIN)
    for path in required:
        if path not in expected:
            raise InputError(f"{path} is missing in {name}.", fix=_AGAIN)
    for path, entry in expected.items():
        try:
            with archive.open(path) as file:
                found = sha256_of(file)
        except UNREADABLE as error:
            raise InputError(f"{path} in {name} is damaged ({error}).", fix=_AGAIN) from error
        if found != (entry.bytes, entry.sha256):
            raise InputError(
                f"{path} in {name} is not what its manifest says: it was changed after the export.",
                fix=_AGAIN,
            )


def _inside(path: str) -> bool:
    """Whether an entry's name stays inside the folder where the archive is unpacked."""
    try:
        refuse_controls(path)
    except ValueError:
        return False
    return not path.startswith("/") and "\\" not in path and ".." not in path.split("/")


def not_ours(name: str, why: str) -> InputError:
    """The error for an archive with what vnuma does not write."""
    return InputError(f"{name} is not an archive that vnuma wrote: {escaped(why)}.", fix=_AGAIN)


_AGAIN = "Copy it again from where it was made, or export it there again: vnuma export RUN"


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
