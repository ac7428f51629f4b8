"""Check a store from elsewhere: nothing in it may execute, and every value must be one that vnuma writes.

https://www.sqlite.org/security.html (untrusted database files): views, triggers, generated columns and index
expressions are programs, and any column may contain any type.
"""

from __future__ import annotations

import math
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Table

from vnuma.domain.vm.bounded_input import read_json
from vnuma.domain.vm.plain_text import refuse_controls
from vnuma.errors import InputError
from vnuma.store.migrate import upgrade
from vnuma.store.open import default_url, sqlite_engine
from vnuma.store.place import parse_place
from vnuma.store.schema import HEAD, VERSION_TABLE
from vnuma.store.tables import metadata
from vnuma.store.types import CanonicalJson, OneOf, UtcTime

MOST_ROWS = 500_000
"""Most rows of a table. A study of 100 arms, 20 blocks and 60 iterations a boot has 120,000 samples."""

MOST_LETTERS = 4_000_000
"""Most bytes of a value."""

MOST_SECONDS = 30.0
"""Time limit for checking the whole file, in seconds."""

_LINES_OF_TEXT = frozenset({"yaml", "detail"})
"""Columns whose text may have line breaks; all other text is one line without control characters."""

_YEARS = range(2000, 2200)
_WRITTEN_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"

_Shape = dict[tuple[str, str], object]


def refuse_foreign_content(path: Path, name: str, revision: str) -> None:
    """Raise InputError unless the SQLite file is a store of that revision with only what vnuma writes.

    `name` is the file's name in messages.
    """
    if not re.fullmatch(r"\d{4}", revision) or not "0001" <= revision <= HEAD:
        raise _refused(name, f"schema {revision[:20]!r} does not exist")
    try:
        with _untrusted(path) as connection:
            _refuse_other_schema(connection, name, revision)
            for table in metadata.sorted_tables:
                if ("table", table.name) in _schema_at(revision):
                    _refuse_odd_rows(connection, table, name)
            _refuse_dangling(connection, name)
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError) as error:
        raise _refused(name, f"it cannot be read ({error})") from error


@contextmanager
def _untrusted(path: Path) -> Iterator[sqlite3.Connection]:
    """Open read-only, trusting no function of the schema, with a limit on value size and a deadline."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        until = time.monotonic() + MOST_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LETTERS)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
            connection.execute(f"PRAGMA {setting}")
        yield connection


def _refuse_other_schema(connection: sqlite3.Connection, name: str, revision: str) -> None:
    expected = _schema_at(revision)
    found = {(kind, called) for kind, called, _ in _objects(connection)}
    for kind, called in sorted(found ^ set(expected)):
        words = "is not part of" if (kind, called) in found else "is missing from"
        raise _refused(name, f"{kind} {called[:60]!r} {words} schema {revision}")
    for key, shape in _shapes(connection).items():
        if shape != expected[key]:
            raise _refused(name, f"{key[0]} {key[1]!r} differs from schema {revision}")
    (version,) = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() or ("none",)
    if version != revision:
        raise _refused(name, f"its schema is {str(version)[:20]!r}, its manifest says {revision}")


def _schema_at(revision: str) -> _Shape:
    """The schema of a new store of that revision; cached."""
    if revision not in _made:
        with tempfile.TemporaryDirectory() as folder:
            place = parse_place(default_url(Path(folder)))
            place.path.touch()
            upgrade(sqlite_engine(place), place, revision=revision)
            with closing(sqlite3.connect(place.path)) as connection:
                _made[revision] = _shapes(connection)
    return _made[revision]


_made: dict[str, _Shape] = {}


def _objects(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Kind, name and text of everything in the schema; a virtual table is a kind of its own."""
    for kind, called, root, sql in connection.execute("SELECT type, name, rootpage, sql FROM sqlite_master"):
        yield "virtual table" if kind == "table" and not root else kind, called, sql or ""


def _shapes(connection: sqlite3.Connection) -> _Shape:
    """Columns of tables and indexes, and the text of everything else."""
    shapes: _Shape = {}
    for kind, called, sql in list(_objects(connection)):
        if kind in ("table", "index"):
            pragma = "table_xinfo" if kind == "table" else "index_xinfo"
            shapes[kind, called] = connection.execute(
                f"SELECT * FROM pragma_{pragma}(?)", (called,)
            ).fetchall()
        else:
            shapes[kind, called] = " ".join(sql.split())
    return shapes


def _refuse_odd_rows(connection: sqlite3.Connection, table: Table, name: str) -> None:
    (rows,) = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
    if rows > MOST_ROWS:
        raise _refused(name, f"{table.name} has {rows:,} rows, more than {MOST_ROWS:,}")
    there = {row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table.name,))}
    columns = [column for column in table.columns if column.name in there]
    listed = ", ".join(f'"{column.name}"' for column in columns)
    for row in connection.execute(f"SELECT {listed} FROM {table.name}"):
        for column, value in zip(columns, row, strict=True):
            try:
                _refuse_odd(column, value)
            except ValueError as error:
                raise _refused(name, f"{table.name}.{column.name}: {error}") from error


def _refuse_dangling(connection: sqlite3.Connection, name: str) -> None:
    """Refuse references to missing rows; SQLite does not check them if foreign keys were off."""
    dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
    if dangling is not None:
        raise _refused(name, f"a row of {dangling[0]} names one of {dangling[2]} that is missing")


def _refuse_odd(column: Column[Any], value: object) -> None:
    """Raise ValueError for a value that vnuma never writes to such a column."""
    if value is None:
        if not column.nullable:
            raise ValueError("the value is missing")
        return
    kind = column.type
    if not isinstance(value, _python_type(column)):
        raise ValueError(f"{type(value).__name__} is not a valid type")  # noqa: TRY004 - one kind for all
    if isinstance(kind, CanonicalJson):
        read_json(str(value), most_bytes=MOST_LETTERS)
    elif isinstance(kind, UtcTime):
        if datetime.strptime(str(value), _WRITTEN_TIME).year not in _YEARS:  # noqa: DTZ007 - its form alone
            raise ValueError(f"no run was measured in {str(value)[:4]}")
    elif isinstance(kind, Boolean) and value not in (0, 1):
        raise ValueError("neither true nor false")
    elif isinstance(value, int) and _is_short(kind) and not -(2**31) <= value < 2**31:
        raise ValueError("more than 32 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(kind, OneOf):
        kind.words(value)
    elif isinstance(value, str):
        refuse_controls(value, lines=column.name in _LINES_OF_TEXT)


def _is_short(kind: object) -> bool:
    """Whether PostgreSQL stores such a number in 32 bits; SQLite always has 64."""
    return isinstance(kind, Integer) and not isinstance(kind, BigInteger)


def _python_type(column: Column[Any]) -> type | tuple[type, ...]:
    """The Python type that SQLite returns for a column's values as vnuma writes them."""
    if isinstance(column.type, Double):
        return (int, float)
    return int if isinstance(column.type, Integer | Boolean) else str


def _refused(name: str, why: str) -> InputError:
    return InputError(
        f"The store in {name} was not written by vnuma: {why}.",
        fix="Export it again where it was measured: vnuma export RUN. Nothing was imported.",
    )
