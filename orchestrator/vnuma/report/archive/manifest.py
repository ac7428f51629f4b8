"""An archive's manifest: its format, its run, and a checksum of every file."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Any

from vnuma import __version__
from vnuma.domain.vm.bounded_input import read_json
from vnuma.domain.vm.plain_text import escaped, refuse_controls
from vnuma.errors import InputError
from vnuma.store.schema import HEAD

NAME = "manifest.json"
KIND = "vnuma/archive"
FORMAT = 1
"""Raised when the previous version can no longer read an archive; the store inside has its own revision."""

STORE = "vnuma.db"
RESULTS = "results.json"
REQUIRED = (STORE, RESULTS)
"""Files that an import reads besides the manifest."""

MOST_UNPACKED = 512_000_000
"""Most bytes of all files together. The largest study so far needs less than a tenth."""

MOST_FILES = 5_000
MOST_DOCUMENT = 16_000_000
"""Most bytes of a JSON document."""

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
    """`store_schema` is the revision of the store inside; older ones are migrated by an import."""

    format: int
    run: str
    simulated: bool
    product_version: str
    store_schema: str
    files: tuple[Entry, ...]

    def as_json(self) -> str:
        """The file's text."""
        return json.dumps({"kind": KIND, **asdict(self)}, indent=2) + "\n"


def sha256_of(file: Any) -> tuple[int, str]:
    """Length and SHA-256 of an open binary file."""
    digest, length = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
        length += len(chunk)
    return length, digest.hexdigest()


def read_manifest(archive: zipfile.ZipFile, name: str) -> Manifest:
    """The manifest of an open archive. Raises InputError if it is missing or from a newer version."""
    _refuse_bomb(archive, name)
    try:
        document = document_in(archive, NAME)
        if document["kind"] != KIND:
            raise _foreign(name)
        if document["format"] > FORMAT:
            writer = document["product_version"]
            raise InputError(
                f"{name} was written by vnuma {writer} in archive format {document['format']}; "
                f"vnuma {__version__} reads up to {FORMAT}.",
                fix=f"Install vnuma {writer} or newer. Nothing was changed.",
            )
        if document["store_schema"] > HEAD:
            writer = document["product_version"]
            raise InputError(
                f"The store in {name} was written by vnuma {writer}: it has schema "
                f"{document['store_schema']}, vnuma {__version__} knows up to {HEAD}.",
                fix=f"Install vnuma {writer} or newer. Nothing was imported.",
            )
        files = tuple(Entry(str(one["path"]), one["bytes"], one["sha256"]) for one in document["files"])
        return Manifest(**{field.name: document[field.name] for field in fields(Manifest)} | {"files": files})
    except (KeyError, TypeError, *UNREADABLE) as error:
        raise _foreign(name) from error


def document_in(archive: zipfile.ZipFile, path: str) -> Any:
    """A JSON document of an open archive. Raises ValueError, KeyError, or one of `UNREADABLE`."""
    with archive.open(path) as file:
        return read_json(file.read(MOST_DOCUMENT + 1), most_bytes=MOST_DOCUMENT)


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


def check_files(archive: zipfile.ZipFile, manifest: Manifest, name: str) -> None:
    """Raise InputError unless exactly the manifest's files are there, unaltered; names the first bad one."""
    names = Counter(info.filename for info in archive.infolist())
    for path, times in names.items():
        if not _inside(path) or times > 1:
            raise InputError(f"{name} has an invalid entry, {escaped(path)!r}.", fix=_AGAIN)
    present = set(names) - {NAME}
    expected = {entry.path: entry for entry in manifest.files}
    for path in sorted(present ^ set(expected)):
        words = "is not in its manifest" if path in present else "is missing"
        raise InputError(f"{path} {words} in {name}: it was changed after the export.", fix=_AGAIN)
    for path in REQUIRED:
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


def _foreign(name: str) -> InputError:
    return InputError(f"{name} is not an archive of vnuma, or only part of one.", fix=_AGAIN)


_AGAIN = "Copy it again from where it was made: vnuma export RUN. Nothing was imported."
