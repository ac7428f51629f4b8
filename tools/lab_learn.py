"""Teach the lab what `vnuma doctor --record` recorded: a golden case.

python tools/lab_learn.py FILE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vnuma.engine.doctor.first_contact import SCHEMA, Redactor

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "recorded"


def learn(source: Path, folder: Path = FOLDER) -> Path:
    """Copy the recording; its name says release and version. Refuses one that still names somebody."""
    text = source.read_text(encoding="utf-8")
    document = YAML(typ="safe", pure=True).load(text)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise SystemExit(f"{source} is no recording of the schema {SCHEMA}.")
    body = {key: document[key] for key in ("vsphere", "sql_server")}
    _refuse_names(source, body)
    lab = "lab-" if "simulated" in document["vsphere"]["about"] else ""
    versions = document["versions"]
    name = f"{lab}esxi-{versions['esxi']}-sql-{versions['sql_server'] or 'none'}"
    return _write(folder / f"{_plain(name)}.yml", text)


def _refuse_names(source: Path, body: dict[str, Any]) -> None:
    if Redactor({}).all(body) != body:
        raise SystemExit(f"{source} still has an address, an identifier or an account in it.")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _write(target: Path, text: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{learn(Path(sys.argv[1]))}\n")
