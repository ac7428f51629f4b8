"""Write docs/reference/properties.md: which properties of vSphere real servers were seen to answer.

python -m tools.properties_doc
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
SEEN = ROOT / "tests" / "data" / "vsphere_properties.yml"
PAGE = ROOT / "docs" / "reference" / "properties.md"

_HEAD = """# Properties that vnuma reads in vSphere

Whether a real server's answer was ever seen for each. *Lab only*: nobody has published one, so only the
documentation and the [lab](../lab.md) vouch for it. Answers to changes of a VM, power calls, privilege
checks, events and tags, and rows of SQL Server's views such as `sys.dm_os_nodes`, were never seen for real.
"""


def seen() -> dict[str, dict[str, dict[str, Any]]]:
    """For each kind of object and property, the releases that answered it."""
    found: dict[str, dict[str, dict[str, Any]]] = YAML(typ="safe").load(SEEN.read_text(encoding="utf-8"))
    return found


def counts() -> tuple[int, int]:
    """How many properties a real server was seen to answer, and how many there are."""
    entries = [entry for properties in seen().values() for entry in properties.values()]
    return sum(bool(entry.get("seen")) for entry in entries), len(entries)


def markdown() -> str:
    """The page."""
    real, every = counts()
    return "\n".join(
        [
            _HEAD,
            f"{real} of {every} were seen with a value.",
            "",
            "| object | property | seen for real |",
            "|--|--|--|",
            *_rows(seen()),
            "",
        ]
    )


def _rows(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    for kind, properties in found.items():
        for path, entry in properties.items():
            yield f"| {kind} | `{path}` | {_words(entry)} |"


def _words(entry: Mapping[str, Any]) -> str:
    if entry.get("seen"):
        return ", ".join(entry["seen"])
    return "only unset" if entry.get("unset") else "lab only"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
