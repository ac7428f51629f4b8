"""Teach the lab what was recorded: `vnuma doctor --record` makes a golden case, `vnuma contract` a scenario.

python tools/lab_learn.py FILE
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from vnuma.domain.contract.belief import SCHEMA as CONTRACT
from vnuma.domain.contract.belief import Verdict
from vnuma.engine.doctor.first_contact import SCHEMA, Redactor

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "recorded"

_NUMBER = re.compile(r"(\d+) instead of (\d+)")
_FAULT = re.compile(r"(\w+) instead of \w+")
_READS = re.compile(r"(\w+) reads \w+ instead of \w+")
_LACKS = re.compile(r"without (.+)")


_FIELDS = ("latencySensitivity", "memoryReservationLockedToMax", "rebootPowerOff")
"""Settings that a request has in a field of their own, which the lab can drop."""


def learn(source: Path, folder: Path = FOLDER) -> Path:
    """Copy the recording; its name says release and version. Refuses one that still names somebody."""
    text = source.read_text(encoding="utf-8")
    document = YAML(typ="safe", pure=True).load(text)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == CONTRACT:
        return _learn_contract(source, document, folder / "contract")
    if schema != SCHEMA:
        raise SystemExit(f"{source} is no recording of the schema {SCHEMA} or {CONTRACT}.")
    body = {key: document[key] for key in ("vsphere", "sql_server")}
    _refuse_names(source, body)
    lab = "lab-" if "simulated" in document["vsphere"]["about"] else ""
    versions = document["versions"]
    name = f"{lab}esxi-{versions['esxi']}-sql-{versions['sql_server'] or 'none'}"
    return _write(folder / f"{_plain(name)}.yml", text)


def _learn_contract(source: Path, document: Mapping[str, Any], folder: Path) -> Path:
    """A scenario in which the lab answers as that server did, where it differs from what is believed."""
    _refuse_names(source, {"beliefs": document["beliefs"]})
    of = document["of"]
    name = _plain(f"{of['kind']}-{of.get('major_version', of.get('server'))}")
    differing = {
        id_: one["seen"] for id_, one in document["beliefs"].items() if one["verdict"] == Verdict.DIFFERS
    }
    played, unplayed = _played(differing)
    scenario = CommentedMap({"name": f"learned-{name}", "learned": played})
    told = [f"From vnuma contract: {len(differing)} differences."]
    told += [f"Not played, teach the lab by hand: {id_}: {seen}" for id_, seen in unplayed.items()]
    scenario.yaml_set_start_comment("\n".join(" ".join(one.split()) for one in told))
    text = StringIO()
    YAML().dump(scenario, text)
    return _write(folder / f"{name}.yml", text.getvalue())


def _played(differing: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the lab's scenarios can say of these differences, and the rest."""
    played: dict[str, Any] = {}
    unplayed: dict[str, str] = {}
    for id_, seen in differing.items():
        room, _, what = id_.partition(".")
        if room == "error" and (number := _NUMBER.fullmatch(seen)):
            played.setdefault("errors", {})[int(number[2])] = int(number[1])
        elif room == "view" and (lacking := _LACKS.fullmatch(seen)):
            played.setdefault("without", {})[what.partition(".")[0]] = lacking[1].split(", ")
        elif (room == "refused" or id_.endswith("_is_refused")) and (fault := _FAULT.fullmatch(seen)):
            played.setdefault("refusals", {})[id_] = fault[1]
        elif (reads := _READS.fullmatch(seen)) and reads[1] in _FIELDS:
            played.setdefault("dropped", []).append(reads[1])
        else:
            unplayed[id_] = seen
    return played, unplayed


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
