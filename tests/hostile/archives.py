"""Archives of a run that somebody changed: what is done to the files of a valid one, by name."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.hostile.broken import JSON_TEXTS, as_bytes
from tests.report.build import Story, store_of, study_text
from vnuma.report.archive.write import export_run
from vnuma.report.model.model import load_run

Files = dict[str, bytes]
Make = Callable[[Files, Path], bytes]
"""The bytes of a changed archive, from a valid one's files and a folder to work in."""

PARTS = ("manifest.json", "facts.json", "study.yml", "samples.csv")
ESCAPE = "sql\x1b[2J\x1b]0;owned\x0716"
_GUARDS = ("vm_written_once", "sample_written_once")


def archive_in(folder: Path) -> None:
    """Write a store with a run, and the run's archive."""
    store = store_of(folder / "vnuma.db", Story(text=study_text(sizes="500", forms="client")))
    loaded = load_run(store, "quick.1")
    export_run(store, loaded, folder / "run.vnuma.zip")


def archived_in(folder: Path) -> tuple[Path, Files]:
    """The store there, and those files of its run's archive from which the run is read."""
    with zipfile.ZipFile(folder / "run.vnuma.zip") as whole:
        return folder / "vnuma.db", {name: whole.read(name) for name in PARTS}


def first_form(store: Path, folder: Path) -> bytes:
    """An archive as earlier versions wrote it, with this store inside."""
    said = {"kind": "vnuma/archive", "format": 1, "run": "quick.1", "product_version": "0.1.0"}
    files = {
        "manifest.json": json.dumps(said).encode(),
        "vnuma.db": store.read_bytes(),
        "results.json": b"{}",
    }
    return packed(files, folder)


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


def set_in(facts: bytes, table: str, column: str, value: object, place: int | None = None) -> bytes:
    """facts.json with that value in each row of a table, or in one row."""
    rows = json.loads(facts)
    for number, row in enumerate(rows[table]):
        if place in (None, number, number - len(rows[table])):
            row[column] = value
    return json.dumps(rows).encode()


def _value(table: str, column: str, value: object, place: int | None = None) -> Make:
    return lambda files, folder: packed(
        files | {"facts.json": set_in(files["facts.json"], table, column, value, place)}, folder
    )


def _text(table: str, column: str, text: str) -> Make:
    """A value that is written as it is, whatever it does to the document."""
    return lambda files, folder: packed(
        files
        | {
            "facts.json": set_in(files["facts.json"], table, column, "HERE").replace(b'"HERE"', text.encode())
        },
        folder,
    )


def _rows(table: str, change: Callable[[list[object]], object]) -> Make:
    def make(files: Files, folder: Path) -> bytes:
        rows = json.loads(files["facts.json"])
        rows[table] = change(rows[table])
        return packed(files | {"facts.json": json.dumps(rows).encode()}, folder)

    return make


def _samples(change: Callable[[list[dict[str, str]]], object]) -> Make:
    """samples.csv after a change to its lines."""

    def make(files: Files, folder: Path) -> bytes:
        lines = list(csv.DictReader(io.StringIO(files["samples.csv"].decode())))
        change(lines)
        out = io.StringIO()
        writer = csv.DictWriter(out, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
        return packed(files | {"samples.csv": out.getvalue().encode()}, folder)

    return make


def _sample(**fields: str) -> Make:
    return _samples(lambda lines: lines[-1].update(fields))


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


_JSON = {name: as_bytes(text) for name, text in JSON_TEXTS.items()} | {
    "Latin-1": b'{"arms": "\xe9"}',
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
    "no facts": _without("facts.json"),
    "no study": _without("study.yml"),
    "no samples": _without("samples.csv"),
    "no manifest": _without("manifest.json", sealed=False),
    "a file that its manifest has and it lacks": _without("facts.json", sealed=False),
    "another study than its manifest says": _part("study.yml", b"name: quick", sealed=False),
    "a name that cannot be decoded": lambda files, folder: _undecodable(
        packed(files | {"café.txt": b"x"}, folder)
    ),
    "an entry above": _part("../out.txt", b"x"),
    "an entry far above": _part("a/../../out.txt", b"x"),
    "an entry at the root": _part("/etc/out.txt", b"x"),
    "an entry of another system": _part("..\\out.txt", b"x"),
    "an entry named by an escape": _part("a\x1b[2J.txt", b"x"),
    "a folder called facts.json": lambda files, folder: packed(
        {one: content for one, content in files.items() if one != "facts.json"} | {"facts.json/": b""}, folder
    ),
    "6,000 entries": lambda files, folder: packed(
        files | {f"x{number}": b"" for number in range(6_000)}, folder
    ),
    "600 MB of zeros": _part("zeros", bytes(600_000_000)),
    **{f"a manifest of {name}": _part("manifest.json", text, sealed=False) for name, text in _JSON.items()},
    **{f"facts of {name}": _part("facts.json", text) for name, text in _JSON.items()},
    "a manifest of another kind": _manifest(kind=["vnuma/archive"]),
    "a format of text": _manifest(format="1"),
    "a format far off": _manifest(format=2**62, product_version="9\x1b[2J"),
    "files of null": _manifest(files=None),
    "files of numbers": _manifest(files=[1]),
    "files of lists": _manifest(files=[{"path": [], "bytes": "x", "sha256": 1}]),
    "a study of Latin-1": _part("study.yml", b"name: \xe9"),
    "a study of nothing": _part("study.yml", b""),
    "a study of 5,000 levels": _part("study.yml", b"title: " + b"[" * 5_000),
    "a study of a merge with itself": _part("study.yml", b"title: &a {<<: *a}"),
    "no run": _rows("run", lambda rows: []),
    "two runs": _rows("run", lambda rows: [*rows, *rows]),
    "no row of a study": _rows("study", lambda rows: []),
    "no VM": _rows("vm", lambda rows: []),
    "no cells": _rows("cell", lambda rows: []),
    "no attempts": _rows("attempt", lambda rows: []),
    "cells of text": _rows("cell", lambda rows: ["x"]),
    "facts that are no list": _rows("fact", lambda rows: {"a": 1}),
    "a cell twice": _rows("cell", lambda rows: [*rows, rows[0]]),
    "an attempt without a number": _rows("attempt", lambda rows: [{"id": 1}, *rows[1:]]),
    "a column of another product": _value("vm", "password", "x"),
    "a run of no study": _value("run", "study_id", 99),
    "a VM of no run": _value("vm", "run_id", 99),
    "a cell of no VM": _value("cell", "vm_id", 99, -1),
    "an attempt of no cell": _value("attempt", "cell_id", 9999, 0),
    "a fact of no VM": _value("fact", "vm_id", 99, -1),
    "a fact of no attempt": _value("fact", "attempt_id", 9999, -1),
    "a time that is none": _value("run", "created_at", "yesterday"),
    "a time of no zone": _value("run", "created_at", "2026-11-17T20:45:10"),
    "a time of month 13": _value("run", "created_at", "2026-13-17T20:45:10.000000Z"),
    "a time of year 1": _value("run", "created_at", "0001-01-01T00:00:00.000000Z"),
    "a time of year 9999": _value("attempt", "ended_at", "9999-12-31T23:59:59.999999Z"),
    "a time of a number": _value("attempt", "ended_at", 5),
    "NaN in a fact": _text("fact", "value_json", "NaN"),
    "an endless number in a fact": _text("fact", "value_json", "1e999"),
    "5,000 digits in a fact": _text("fact", "value_json", "7" * 5_000),
    "deep JSON in a fact": _text("fact", "value_json", "[" * 100_000),
    "half a character in a fact": _text("fact", "value_json", '"\\ud800"'),
    "facts of null": _value("fact", "value_json", None),
    "facts of lists": _value("fact", "value_json", [1]),
    "facts of text": _value("fact", "value_json", "x"),
    "a token of text": _value("attempt", "token", "many"),
    "a name of a number": _value("vm", "name", 7),
    "an unknown state": _value("run", "state", "lost"),
    "an unknown outcome": _value("attempt", "outcome", "lost"),
    "a name that escapes": _value("vm", "name", ESCAPE),
    "a path that escapes": _value("vm", "path", ESCAPE),
    "a run named like a path": _value("run", "name", "../owned"),
    "a run named like a file of the system": _value("run", "name", "/tmp/owned"),
    "a run number of 2**62": _value("run", "number", 2**62),
    "a run number of true": _value("run", "number", True),
    "a sample twice": _samples(lambda lines: lines.append(lines[-1])),
    "a sample of no attempt": _sample(attempt="99"),
    "a sample of no VM": _sample(vm="other"),
    "a sample that is endless": _sample(elapsed_ms="inf"),
    "a sample that is no number": _sample(elapsed_ms="nan"),
    "a sample below zero": _sample(elapsed_ms="-1"),
    "a sample of text": _sample(elapsed_ms="fast"),
    "a sample without a time or a reason": _sample(elapsed_ms=""),
    "a sample of 5,000 digits": _sample(size="7" * 5_000),
    "a sample of yesterday": _sample(at="yesterday"),
    "a sample that is perhaps a warm-up": _sample(warmup="perhaps"),
    "a sample of a form that escapes": _sample(form=ESCAPE),
    "waits of NaN": _sample(waits='{"A": {"wait_ms": NaN}}'),
    "waits of text": _sample(waits='"x"'),
    "figures of lists": _sample(figures="[1]"),
    "execution of 100,000 levels": _sample(execution="[" * 100_000),
    "samples of text": _part("samples.csv", b"quick\n" * 1_000),
    "samples of nothing": _part("samples.csv", b""),
    "samples of Latin-1": lambda files, folder: packed(
        files | {"samples.csv": files["samples.csv"] + b"\xe9\n"}, folder
    ),
    "a sample of 1 MB in a field": _sample(reason="x" * 1_000_000, elapsed_ms=""),
    "a huge size": _sample(size=str(2**62)),
    "a negative run number": _value("run", "number", -1),
}
"""Each of them is refused, but those in `READ`."""

READ = frozenset(
    {"facts of null", "facts of lists", "facts of text", "a huge size", "no attempts", "samples of nothing"}
)
"""Archives that hold odd values and may be read all the same."""
