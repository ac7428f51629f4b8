"""Write docs/reference/roles.md from the roles' argument_specs: options are described once.

python tools/roles_doc.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "roles.md"

ORDER = (
    "design_check",
    "vm_topology",
    "vm_power",
    "guest_ready",
    "sql_dataset",
    "sql_benchmark",
    "cell",
    "vm_restore",
)
"""As they are used, one after the other."""

HEAD = """# Roles

Options of the roles of the collection `vnuma.vnuma`. This page is written by `tools/roles_doc.py` from
each role's `meta/argument_specs.yml`; each role's README has an example, and says what a second run and
check mode do.

Every role takes its VM from inventory variables (`vnuma_vm`, `vnuma_vcenter`, `vnuma_sql`, as in
`inventories/example`) unless its `_target` option says otherwise.
The roles `cell` and `vm_restore` also take hosts without `vnuma_vcenter` or `vnuma_sql`. A failure carries
`exit_code` and `error`, and a failed step of a cell `reason`, so that a playbook can decide on words that
stay.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *map(_section, ORDER)])


def _section(role: str) -> str:
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    spec: dict[str, Any] = yaml.safe_load(text)["argument_specs"]["main"]
    rows = [_row(name, option) for name, option in spec["options"].items()]
    return "\n".join(
        [
            f"## {role}",
            "",
            *spec["description"],
            "",
            "| option | values | default | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _row(name: str, option: dict[str, Any]) -> str:
    values = ", ".join(f"`{choice}`" for choice in option.get("choices", [])) or option["type"]
    return f"| `{name}` | {values} | {_default(option)} | {option['description']} |"


def _default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    default = option["default"]
    if default in ("", {}):
        return "empty"
    return "from the inventory" if isinstance(default, dict) or "{{" in str(default) else f"`{default}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
