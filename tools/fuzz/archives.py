"""Archives: the zip, a document, a value in a row or the samples."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from functools import cache
from pathlib import Path

from tests.hostile.archives import Files, archive_in, archived_in, packed, set_in
from tests.hostile.mutate import ODD_VALUES, changed, with_other_bytes
from tools.fuzz.tried import tried
from vnuma.report.archive.read import open_archive
from vnuma.store.tables import metadata

_COLUMNS = {table.name: [column.name for column in table.columns] for table in metadata.sorted_tables}


def archive(dice: random.Random, folder: Path) -> str:
    """An archive: its zip, a document, a value in a row or its samples."""
    files: Files = dict(_archive())
    kind, what = dice.choice(("zip", "document", "samples", "row", "row", "row")), ""
    if kind == "document":
        name = dice.choice(("manifest.json", "facts.json"))
        files[name] = json.dumps(changed(json.loads(files[name]), dice)).encode()
        data = packed(files, folder, sealed=name != "manifest.json")
    elif kind == "row":
        table = dice.choice(("study", "run", "vm", "cell", "attempt", "fact"))
        column, value = dice.choice(_COLUMNS[table]), dice.choice(ODD_VALUES)
        place = dice.randint(0, 8) if dice.random() < 0.5 else None
        what = f"{table}.{column} = {value!r}, row {place}"
        files["facts.json"] = set_in(files["facts.json"], table, column, value, place)
        data = packed(files, folder)
    elif kind == "samples":
        files["samples.csv"] = with_other_bytes(files["samples.csv"], dice)
        data = packed(files, folder)
    else:
        data = with_other_bytes(packed(files, folder), dice)
    path = folder / "run.vnuma.zip"
    path.write_bytes(data)
    return tried(what or hashlib.sha256(data).hexdigest(), lambda: open_archive(path))


@cache
def _archive() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        archive_in(Path(folder))
        return archived_in(Path(folder))[1]
