"""Terraform plans and states for tests, after the documented format of `terraform show -json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KIND = "vsphere_virtual_machine"
SQL16 = {"name": "sql16", "num_cpus": 16, "num_cores_per_socket": 16, "memory": 65536, "hardware_version": 20}


def resource(address: str = f"{KIND}.sql", **values: Any) -> dict[str, Any]:
    """One instance with these values."""
    return {
        "address": address,
        "mode": "managed",
        "type": KIND,
        "name": address.rpartition(".")[2].partition("[")[0],
        "schema_version": 3,
        "values": {**SQL16, **values},
        "sensitive_values": {},
    }


def change(
    address: str = f"{KIND}.sql", actions: Sequence[str] = ("create",), **marks: Any
) -> dict[str, Any]:
    """What a plan does to one instance; `marks` are after_unknown and after_sensitive."""
    return {"address": address, "type": KIND, "change": {"actions": list(actions), **marks}}


def plan(*resources: dict[str, Any], changes: Sequence[dict[str, Any]] = (), **top: Any) -> dict[str, Any]:
    """A plan that creates these, unless `changes` say otherwise."""
    made = changes or [change(one["address"]) for one in resources]
    return {
        "format_version": "1.2",
        "terraform_version": "1.11.4",
        "planned_values": {"root_module": {"resources": list(resources)}},
        "resource_changes": list(made),
        **top,
    }


def written(folder: Path, document: object) -> Path:
    """The document in a file."""
    file = folder / "plan.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
