"""Keep a recording of `vnuma doctor --record` as one that the tests replay: python tools/lab_learn.py FILE"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ruamel.yaml import YAML

from vnuma.engine.doctor.first_contact import MOST_BYTES, SCHEMA

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "recorded"


def learn(source: Path, folder: Path = FOLDER) -> Path:
    """Copy the recording; its name says the versions. Refuses a file of another kind or size."""
    text = source.read_text(encoding="utf-8")
    document = YAML(typ="safe", pure=True).load(text) if len(text) <= MOST_BYTES else None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise SystemExit(f"{source} is not a recording of the schema {SCHEMA}.")
    lab = "lab" if document.get("simulated") else "vcenter"
    name = f"{lab}-{document['vsphere']['version']}-sql-{document['sql_server'].get('version', 'none')}"
    target = folder / f"{re.sub(r'[^a-z0-9.]+', '-', name.lower())}.yml"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{learn(Path(sys.argv[1]))}\n")
