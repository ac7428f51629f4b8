"""Terraform plans and states for tests: a real plan (data/terraform) and documents made from its parts."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REAL = Path(__file__).parent / "data" / "terraform"
KIND = "vsphere_virtual_machine"


def real() -> dict[str, Any]:
    """The real plan: eight VMs, of which one exists and one is replaced; main.tf says what each is for."""
    found: dict[str, Any] = json.loads((REAL / "plan.json").read_text(encoding="utf-8"))
    return found


_REAL = real()
_RESOURCE = next(
    one for one in _REAL["planned_values"]["root_module"]["resources"] if one["address"] == f"{KIND}.sql"
)
_CHANGE = next(one for one in _REAL["resource_changes"] if one["address"] == f"{KIND}.sql")


def resource(address: str = f"{KIND}.sql", **values: Any) -> dict[str, Any]:
    """The real plan's new VM as one instance with these values."""
    found: dict[str, Any] = copy.deepcopy(_RESOURCE)
    found |= {"address": address, "name": address.rpartition(".")[2].partition("[")[0]}
    found["values"] |= values
    return found


def change(
    address: str = f"{KIND}.sql", actions: Sequence[str] = ("create",), **marks: Any
) -> dict[str, Any]:
    """What a plan does to one instance; `marks` are its after_unknown, after_sensitive and before."""
    found: dict[str, Any] = copy.deepcopy(_CHANGE)
    found["address"] = address
    found["change"] |= {"actions": list(actions), **marks}
    return found


def plan(*resources: dict[str, Any], changes: Sequence[dict[str, Any]] = (), **top: Any) -> dict[str, Any]:
    """A plan that creates these, unless `changes` say otherwise."""
    made = changes or [change(one["address"]) for one in resources]
    return {
        **real(),
        "planned_values": {"root_module": {"resources": list(resources)}},
        "resource_changes": list(made),
        **top,
    }


def written(folder: Path, document: object) -> Path:
    """The document in a file."""
    file = folder / "plan.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
