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


COMPUTED = (
    "annotation",
    "change_version",
    "hardware_version",
    "id",
    "moid",
    "power_state",
    "uuid",
    "vmx_path",
)
"""Attributes that the provider fills in itself: unknown in a plan unless the code sets them."""


def real_plan(
    *,
    actions: Sequence[str],
    template: dict[str, Any] | None = None,
    unknown: Sequence[str] = (),
    **values: Any,
) -> dict[str, Any]:
    """A plan as the provider's own look: an unset attribute is null, what it computes is unknown, marks of
    sensitive values have the shape of the values; a template is in the prior state.
    """
    unset = dict.fromkeys(("hardware_version", "extra_config", "cpu_hot_add_enabled", "memory_reservation"))
    after = {**SQL16, **unset, **values, "clone": [{"template_uuid": "42-1"}] if template else []}
    open_ = [name for name in (*COMPUTED, *unknown) if after.get(name) is None]
    parts: list[dict[str, Any]] = [{}] if template else []
    marks: dict[str, Any] = {
        "after": after,
        "after_unknown": {**dict.fromkeys(open_, True), "clone": parts},
        "after_sensitive": {"extra_config": {}, "clone": parts, "disk": [{}]},
        "before": None if list(actions) == ["create"] else {**SQL16, "cpu_hot_add_enabled": True},
    }
    one = resource() | {"values": {name: value for name, value in after.items() if name not in open_}}
    data = {
        "address": f"data.{KIND}.t",
        "mode": "data",
        "type": KIND,
        "values": {"id": "42-1", **(template or {})},
    }
    prior = {"root_module": {"resources": [data] if template else []}}
    return plan(one, changes=[change(actions=actions, **marks)], prior_state={"values": prior})


def written(folder: Path, document: object) -> Path:
    """The document in a file."""
    file = folder / "plan.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
