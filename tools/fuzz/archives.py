"""Archives: the zip, a document or a value in the store."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from tests.hostile.archives import Files, archived_in, changed_store, packed
from tests.hostile.mutate import ODD_VALUES, changed, with_other_bytes
from tests.support.stores import new_store
from tools.fuzz.tried import tried
from vnuma.report.archive.read import import_run
from vnuma.store.tables import metadata

_COLUMNS = {table.name: [column.name for column in table.columns] for table in metadata.sorted_tables}


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
    return tried(what or hashlib.sha256(data).hexdigest(), lambda: import_run(store, path))


@cache
def _archive() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        return archived_in(Path(folder))[1]
