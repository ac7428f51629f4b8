"""Convert an archive of format 1, which has a SQLite file inside, to one that this version reads.

    python -m tools.convert_archive OLD.vnuma.zip NEW.vnuma.zip

The old file may come from a stranger (https://www.sqlite.org/security.html): it is opened read-only, no
function of its schema is trusted, and sizes and time are limited. Every value is checked as in a new archive.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Table

from vnuma.errors import InputError, VnumaError
from vnuma.report.archive.raw import MOST_SAMPLES
from vnuma.report.archive.read import (
    FORMAT,
    UNREADABLE,
    Entry,
    check_files,
    manifest_document,
    not_ours,
    open_archive,
)
from vnuma.report.archive.write import export_run
from vnuma.report.model.model import load_run
from vnuma.store.one_run import store_of_rows, stored_value
from vnuma.store.open import Store
from vnuma.store.rows import Sample
from vnuma.store.tables import metadata
from vnuma.words.bounded_json import read_json
from vnuma.words.plain_text import escaped

STORE = "vnuma.db"
MOST_LETTERS = 4_000_000
"""Most bytes of a value."""

MOST_SECONDS = 60.0
"""Time limit for reading the whole file, in seconds."""

_TABLES = ("study", "run", "vm", "cell", "attempt", "fact", "sample")


def convert(old: Path, new: Path) -> None:
    """Write the archive again. Raises InputError for a file that vnuma did not write."""
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / STORE
        try:
            _unpack(old, inside)
            with _untrusted(inside) as connection:
                store = _filled(connection, old.name)
        except (sqlite3.Error, sqlite3.Warning, *UNREADABLE) as error:
            raise not_ours(old.name, f"it cannot be read ({error})") from error
        try:
            export_run(store, load_run(store, "latest"), new)
        except VnumaError:
            raise
        except Exception as error:
            why = f"it cannot be analysed ({type(error).__name__}: {str(error)[:200]})"
            raise not_ours(old.name, why) from error
    open_archive(new)


def _unpack(old: Path, inside: Path) -> None:
    with zipfile.ZipFile(old) as archive:
        document = manifest_document(archive, old.name)
        if document.get("format") != 1:
            raise InputError(f"{old} does not have archive format 1.", fix=f"vnuma reads format {FORMAT}.")
        try:
            files = [Entry(str(one["path"]), one["bytes"], one["sha256"]) for one in document["files"]]
        except (KeyError, TypeError) as error:
            raise not_ours(old.name, f"its manifest has an error, {error}") from error
        check_files(archive, files, old.name, (STORE,))
        with archive.open(STORE) as source, inside.open("wb") as target:
            shutil.copyfileobj(source, target)


@contextmanager
def _untrusted(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        until = time.monotonic() + MOST_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LETTERS)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.row_factory = sqlite3.Row
        yield connection


def _filled(connection: sqlite3.Connection, name: str) -> Store:
    """A store of ours with the rows of the old one. Raises ValueError for what vnuma does not write."""
    for table in _TABLES:
        _refuse_program(connection, table)
    rows = {table: list(_rows(connection, metadata.tables[table])) for table in _TABLES if table != "sample"}
    for table in ("study", "run"):
        if len(rows[table]) != 1:
            raise ValueError(f"it holds {len(rows[table])} rows of {table}, not one")
    return store_of_rows(name, rows, _samples(connection))


def _refuse_program(connection: sqlite3.Connection, table: str) -> None:
    """Refuse a view, a virtual table and computed columns, which run something when they are read."""
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = ? AND type = 'table' AND rootpage > 0", (table,)
    ).fetchall()
    computed = connection.execute("SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden", (table,)).fetchall()
    if len(found) != 1 or computed:
        raise ValueError(f"{table} is not a table of vnuma")


def _rows(connection: sqlite3.Connection, table: Table) -> Iterator[dict[str, Any]]:
    """Rows of the columns that the old schema has already; later columns are empty."""
    there = {
        row["name"] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table.name,))
    }
    columns = [column for column in table.c if column.name in there]
    shown = ", ".join(f'"{column.name}"' for column in columns)
    for row in connection.execute(f"SELECT {shown} FROM {table.name} ORDER BY 1, rowid"):
        yield {column.name: _plain(column, row[column.name]) for column in columns}


def _plain(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if column.name.endswith("_json"):
        return read_json(str(value), most_bytes=MOST_LETTERS)
    return {0: False, 1: True}.get(value, value) if isinstance(column.type, Boolean) else value


def _samples(connection: sqlite3.Connection) -> Iterator[tuple[int, Sample]]:
    table = metadata.tables["sample"]
    for number, row in enumerate(_rows(connection, table), start=1):
        if number > MOST_SAMPLES:
            raise ValueError(f"it has more than {MOST_SAMPLES:,} samples")
        values: dict[str, Any] = {
            name.removesuffix("_json"): stored_value(table.c[name], value)
            for name, value in row.items()
            if name != "outcome"
        }
        try:
            yield values.pop("attempt_id"), Sample(**values)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"sample {number}: {error}") from error


def main() -> int:
    """Convert, and print where the new archive is; a refusal is exit code 3."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    try:
        convert(given.old, given.new)
    except VnumaError as error:
        sys.stderr.write(escaped(f"{error.what}\n{error.fix or ''}\n"))
        return error.exit_code
    print(f"Archive    {given.new}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
