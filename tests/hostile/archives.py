"""Archives of a run that somebody changed: what is done to the files of a valid one, by name."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.report.build import Story, store_of, study_text
from vnuma.report.archive.write import export_run
from vnuma.report.model.model import load_run

Files = dict[str, bytes]
Make = Callable[[Files, Path], bytes]
"""The bytes of a changed archive, from a valid one's files and a folder to work in."""

ESCAPE = "sql\x1b[2J\x1b]0;owned\x0716"
_GUARDS = ("vm_written_once", "sample_written_once")


def archive_in(folder: Path) -> None:
    """Write a store with a run, and the run's archive."""
    store = store_of(folder / "vnuma.db", Story(text=study_text(sizes="500", forms="client")))
    loaded = load_run(store, "quick.1")
    export_run(store, loaded, folder / "run.zip")


def archived_in(folder: Path) -> tuple[Path, Files]:
    """The store there, and those files of its run's archive that an import reads."""
    with zipfile.ZipFile(folder / "run.zip") as whole:
        names = ("manifest.json", "vnuma.db", "results.json")
        return folder / "vnuma.db", {name: whole.read(name) for name in names}


def packed(files: Files, folder: Path, *, sealed: bool = True) -> bytes:
    """A zip of these files; `sealed`: its manifest is true to them."""
    if sealed:
        said = json.loads(files["manifest.json"])
        said["files"] = [
            {"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
            if name != "manifest.json"
        ]
        files = files | {"manifest.json": json.dumps(said).encode()}
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path.read_bytes()


def changed_store(store: bytes, folder: Path, statements: str) -> bytes:
    """The bytes of a store after SQL that its triggers and references would forbid."""
    path = folder / "changed.db"
    path.write_bytes(store)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE name IN (?, ?)", _GUARDS).fetchall()
    for name in _GUARDS:
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(statements)
    for (guard,) in rows:
        connection.execute(guard)
    connection.commit()
    connection.close()
    return path.read_bytes()


def _sql(statements: str) -> Make:
    return lambda files, folder: packed(
        files | {"vnuma.db": changed_store(files["vnuma.db"], folder, statements)}, folder
    )


def _part(name: str, content: bytes, *, sealed: bool = True) -> Make:
    return lambda files, folder: packed(files | {name: content}, folder, sealed=sealed)


def _without(name: str, *, sealed: bool = True) -> Make:
    return lambda files, folder: packed(
        {one: content for one, content in files.items() if one != name}, folder, sealed=sealed
    )


def _manifest(**fields: object) -> Make:
    def make(files: Files, folder: Path) -> bytes:
        said = json.loads(files["manifest.json"]) | fields
        return packed(
            files | {"manifest.json": json.dumps(said).encode()}, folder, sealed="files" not in fields
        )

    return make


def _bytes(change: Callable[[bytes], bytes]) -> Make:
    return lambda files, folder: change(packed(files, folder))


def _undecodable(data: bytes) -> bytes:
    """The name of an entry in no encoding: flagged as UTF-8, which it is not."""
    return data.replace(b"caf\xc3\xa9.txt", b"caf\xff\xfe.txt")


_JSON = {
    "nothing": b"",
    "100,000 levels": b"[" * 100_000,
    "500 levels": b"[" * 500 + b"]" * 500,
    "a list": b"[]",
    "null": b"null",
    "NaN": b'{"arms": NaN}',
    "a number of 5,000 digits": b'{"arms": ' + b"7" * 5_000 + b"}",
    "Latin-1": b'{"arms": "\xe9"}',
    "half a character": b'{"arms": "\\ud800"}',
    "17 MB": b'"' + b"x" * 17_000_000 + b'"',
}

ARCHIVES: dict[str, Make] = {
    "nothing": lambda _files, _folder: b"",
    "text": lambda _files, _folder: b"quick\n" * 1_000,
    "an empty zip": lambda _files, _folder: b"PK\5\6" + bytes(18),
    "half of it": _bytes(lambda data: data[: len(data) // 2]),
    "its second half": _bytes(lambda data: data[len(data) // 2 :]),
    "a directory of zeros": _bytes(lambda data: data[:-200] + bytes(200)),
    "its middle zeroed": _bytes(lambda data: data[:5_000] + bytes(2_000) + data[7_000:]),
    "a far directory": _bytes(lambda data: data[:-6] + b"\xff\xff\xff\x7f" + data[-2:]),
    "no store": _without("vnuma.db"),
    "no results": _without("results.json"),
    "no manifest": _without("manifest.json", sealed=False),
    "a store that its manifest does not name": _without("vnuma.db", sealed=False),
    "a name that cannot be decoded": lambda files, folder: _undecodable(
        packed(files | {"café.txt": b"x"}, folder)
    ),
    "an entry above": _part("../out.txt", b"x"),
    "an entry far above": _part("a/../../out.txt", b"x"),
    "an entry at the root": _part("/etc/out.txt", b"x"),
    "an entry of another system": _part("..\\out.txt", b"x"),
    "an entry named by an escape": _part("a\x1b[2J.txt", b"x"),
    "a folder called vnuma.db": lambda files, folder: packed(
        {one: content for one, content in files.items() if one != "vnuma.db"} | {"vnuma.db/": b""}, folder
    ),
    "6,000 entries": lambda files, folder: packed(
        files | {f"x{number}": b"" for number in range(6_000)}, folder
    ),
    "600 MB of zeros": _part("zeros", bytes(600_000_000)),
    **{f"a manifest of {name}": _part("manifest.json", text, sealed=False) for name, text in _JSON.items()},
    **{f"results of {name}": _part("results.json", text) for name, text in _JSON.items()},
    "a manifest of another kind": _manifest(kind=["vnuma/archive"]),
    "a format of text": _manifest(format="1"),
    "a format far off": _manifest(format=2**62, product_version="9\x1b[2J"),
    "a schema of a number": _manifest(store_schema=14),
    "a schema of a superscript": _manifest(store_schema="000²"),
    "a schema of nothing": _manifest(store_schema=""),
    "an older schema": _manifest(store_schema="0001"),
    "files of null": _manifest(files=None),
    "files of numbers": _manifest(files=[1]),
    "files of lists": _manifest(files=[{"path": [], "bytes": "x", "sha256": 1}]),
    "a store of text": _part("vnuma.db", b"quick\n" * 1_000),
    "a store of nothing": _part("vnuma.db", b""),
    "a store of zeros": _part("vnuma.db", bytes(8_192)),
    "half a store": lambda files, folder: packed(
        files | {"vnuma.db": files["vnuma.db"][: len(files["vnuma.db"]) // 8192 * 4096]}, folder
    ),
    "a store with zeroed pages": lambda files, folder: packed(
        files | {"vnuma.db": files["vnuma.db"][:40_960] + bytes(40_960) + files["vnuma.db"][81_920:]}, folder
    ),
    "no run": _sql("DELETE FROM run"),
    "no study": _sql("DELETE FROM study"),
    "no VM": _sql("DELETE FROM vm"),
    "no cells": _sql("DELETE FROM cell"),
    "no attempts": _sql("DELETE FROM attempt"),
    "a run of no study": _sql("UPDATE run SET study_id = 99"),
    "a VM of no run": _sql("UPDATE vm SET run_id = 99"),
    "a cell of no VM": _sql("UPDATE cell SET vm_id = 99 WHERE id = (SELECT max(id) FROM cell)"),
    "an attempt of no cell": _sql("UPDATE attempt SET cell_id = 9999 WHERE id = 1"),
    "samples of no attempt": _sql("UPDATE sample SET attempt_id = 9999 WHERE attempt_id = 1"),
    "a fact of no VM": _sql("UPDATE fact SET vm_id = 99 WHERE id = (SELECT max(id) FROM fact)"),
    "a fact of no attempt": _sql("UPDATE fact SET attempt_id = 9999 WHERE id = (SELECT max(id) FROM fact)"),
    "a time that is none": _sql("UPDATE run SET created_at = 'yesterday'"),
    "a time of month 13": _sql("UPDATE run SET created_at = '2026-13-17T20:45:10.000000Z'"),
    "a time of year 1": _sql("UPDATE run SET created_at = '0001-01-01T00:00:00.000000Z'"),
    "a time in superscript": _sql("UPDATE run SET created_at = '²026-11-17T20:45:10.000000Z'"),
    "a time of year 9999": _sql("UPDATE attempt SET ended_at = '9999-12-31T23:59:59.999999Z'"),
    "NaN in a fact": _sql("UPDATE fact SET value_json = 'NaN'"),
    "deep JSON in a fact": _sql(f"UPDATE fact SET value_json = '{'[' * 100_000}'"),
    "facts of null": _sql("UPDATE fact SET value_json = 'null'"),
    "facts of lists": _sql("UPDATE fact SET value_json = '[1]'"),
    "facts of text": _sql("UPDATE fact SET value_json = '\"x\"'"),
    "an endless time": _sql("UPDATE sample SET elapsed_ms = 9e999"),
    "a time below zero": _sql("UPDATE sample SET elapsed_ms = -1"),
    "a huge size": _sql(f"UPDATE sample SET size = {2**62}"),
    "an unknown state": _sql("UPDATE run SET state = 'lost'"),
    "an unknown outcome": _sql("UPDATE attempt SET outcome = 'lost'"),
    "a name that escapes": _sql("UPDATE vm SET name = 'sql' || char(27) || '[2J'"),
    "a study of 5,000 levels": _sql(f"UPDATE study SET yaml = 'title: {'[' * 5_000}'"),
    "a study of a merge with itself": _sql("UPDATE study SET yaml = 'title: &a {<<: *a}'"),
    "a run number of 2**62": _sql(f"UPDATE run SET number = {2**62}, name = study_name || '.{2**62}'"),
    "a run number below zero": _sql("UPDATE run SET number = -1, name = study_name || '.-1'"),
}
"""Each of them is refused, but those in `READ`."""

READ = frozenset({"facts of null", "facts of lists", "facts of text", "a huge size"})
"""Archives that hold odd values and may be read all the same."""
