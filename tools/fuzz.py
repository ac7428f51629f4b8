"""Mutate valid inputs for a while: whatever they become, vnuma answers, or raises its own error, in time.

python -m tools.fuzz --seconds 600 --seed 1 [study snapshot waivers log timing archive]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from tests.hostile.archives import Files, archived_in, changed_store, packed
from tests.hostile.documents import SNAPSHOT
from tests.hostile.mutate import ODD_VALUES, changed, mutated, with_other_bytes
from tests.hostile.studies import WELL
from tests.support.stores import new_store
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.design_check.check import Asked, run_check
from vnuma.errors import VnumaError
from vnuma.estate import snapshot, waivers
from vnuma.logs.kinds import read_any
from vnuma.report.archive.read import import_run
from vnuma.report.check.as_json import as_json
from vnuma.report.check.as_text import lines
from vnuma.sqlserver.client.statistics_time import parse_messages
from vnuma.store.tables import metadata

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_S = 10

Attempt = Callable[[random.Random, Path], str]
"""Makes one mutated input, has vnuma read it, and returns what it was, for the report of a failure."""


def study(dice: random.Random, _folder: Path) -> str:
    """A study file."""
    folder = ROOT / "studies"
    text = mutated(dice.choice([WELL, *(one.read_text() for one in sorted(folder.glob("*.yml")))]), dice)
    return _tried(text, lambda: parse_study(text, "study.yml"))


def inventory(dice: random.Random, folder: Path) -> str:
    """A snapshot: read, checked by every rule, and shown."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    text = json.dumps(changed(json.loads(text), dice)) if dice.random() < 0.8 else mutated(text, dice)
    path = folder / "estate.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    def read() -> None:
        result = run_check(snapshot.load(path), Asked())
        list(lines(result))
        as_json(result)

    return _tried(text, read)


def accepted(dice: random.Random, folder: Path) -> str:
    """A waivers file."""
    valid = "waivers:\n" + "- {rule: T11, object: sql-*, reason: 'CR 17', until: 2027-03-31}\n" * 3
    text, path = mutated(valid, dice), folder / "waivers.yml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return _tried(text, lambda: waivers.load(path))


def log(dice: random.Random, _folder: Path) -> str:
    """A vmware.log or what a tool printed."""
    text = mutated(dice.choice(_texts("vmware_log", "host_tools", "guest_tools", "sql_errorlog")), dice)
    return _tried(text, lambda: read_any(text))


def timing(dice: random.Random, _folder: Path) -> str:
    """The text of message 3612."""
    text = mutated(dice.choice(_texts("statistics_time")), dice)
    return _tried(text, lambda: parse_messages([("[01000] (3612)", text)]))


def archive(dice: random.Random, folder: Path) -> str:
    """An archive: its zip, a document or a value in its store."""
    files: Files = dict(_archive())
    kind, what = dice.choice(("zip", "document", "document", "store", "store", "store")), ""
    if kind == "document":
        name = dice.choice(("manifest.json", "results.json"))
        files[name] = json.dumps(changed(json.loads(files[name]), dice)).encode()
        data = packed(files, folder, sealed=name != "manifest.json")
    elif kind == "store":
        table = dice.choice(("study", "run", "vm", "cell", "attempt", "sample", "fact"))
        column = dice.choice(_COLUMNS[table])
        value = dice.choice(ODD_VALUES)
        odd = (
            json.dumps(value) if column.endswith("_json") else value if isinstance(value, int) else str(value)
        )
        quoted = "CAST(x'" + str(odd).encode("utf-8", "surrogatepass").hex() + "' AS TEXT)"
        what = f"UPDATE {table} SET {column} = {odd if isinstance(odd, int) else quoted}"
        if dice.random() < 0.5:
            what += f" WHERE rowid = {dice.randint(1, 8)}"
        try:
            data = packed(files | {"vnuma.db": changed_store(files["vnuma.db"], folder, what)}, folder)
        except sqlite3.Error:  # SQLite itself does not hold it
            return what
    else:
        data = with_other_bytes(packed(files, folder), dice)
    path = folder / "run.zip"
    path.write_bytes(data)
    (folder / "vnuma.db").unlink(missing_ok=True)
    store = new_store(folder / "vnuma.db")
    return _tried(what or hashlib.sha256(data).hexdigest(), lambda: import_run(store, path))


@contextmanager
def _in_time() -> Iterator[None]:
    def late(_number: int, _frame: object) -> None:
        raise RuntimeError(f"not done within {DEADLINE_S} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE_S)
    try:
        yield
    finally:
        signal.alarm(0)


class Failed(Exception):
    """vnuma raised something else than its own error; the message is the input."""


def _tried(shown: str, read: Callable[[], object]) -> str:
    try:
        with _in_time():
            read()
    except VnumaError:
        pass
    except Exception as error:
        raise Failed(shown) from error
    return shown


@cache
def _texts(*names: str) -> tuple[str, ...]:
    """What servers and tools printed, out of the tests' data."""
    files = [(ROOT / "tests/data/logs" / f"{name}.yml").read_text(encoding="utf-8") for name in names]
    cases = [case for file in files for case in YAML(typ="safe").load(file)]
    return tuple(one["text"] for case in cases for one in (case, *case.get("messages", ())) if "text" in one)


@cache
def _archive() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        return archived_in(Path(folder))[1]


_COLUMNS = {table.name: [column.name for column in table.columns] for table in metadata.sorted_tables}
INPUTS: dict[str, Attempt] = {
    **{"study": study, "snapshot": inventory, "waivers": accepted},
    **{"log": log, "timing": timing, "archive": archive},
}


def main() -> int:
    """Fuzz every input that is named, or all; 1 at the first failure of each, which is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for each kind of input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("inputs", nargs="*", choices=[*INPUTS, []], default=[])
    given = parser.parse_args()
    failures = [_fuzz(name, given.seconds, given.seed) for name in given.inputs or INPUTS]
    return max(failures)


def _fuzz(name: str, seconds: float, seed: int) -> int:
    until, tried = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < until:
            try:
                INPUTS[name](random.Random(f"{name} {seed} {tried}"), Path(folder))
            except Failed as failure:
                sys.stdout.write(f"{name}, seed {seed}, input {tried}:\n{str(failure)[:2000]!r}\n")
                traceback.print_exception(failure.__cause__, file=sys.stdout)
                return 1
            tried += 1
    print(f"{name}: {tried:,} inputs in {seconds:g} s, seed {seed}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
