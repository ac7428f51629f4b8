"""The study file's JSON Schema and its documentation, generated from the model."""

from __future__ import annotations

import json
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vnuma.domain.arm.arm import Arm, ArmSettings, PhysicalCores
from vnuma.domain.study.design import Design
from vnuma.domain.study.hours import AllowedHours
from vnuma.domain.study.study import Dataset, Limits, Power, Published, Quiet, Study
from vnuma.domain.workloads.kinds import KINDS

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("The study", Study),
    ("arms: each arm", Arm),
    ("all_arms", ArmSettings),
    ("affinity: a mapping", PhysicalCores),
    ("design", Design),
    *((f"workload: {name}", kind) for name, kind in KINDS.items()),
    ("dataset", Dataset),
    ("power", Power),
    ("quiet", Quiet),
    ("limits", Limits),
    ("allowed_hours", AllowedHours),
    ("published", Published),
)


def json_schema() -> str:
    """The schema as JSON text, for editors. `vm` and arms written as a topology alone are allowed too."""
    schema = Study.model_json_schema()
    properties = schema["properties"]
    properties["vm"] = {"type": "string", "description": "One VM: short for `vms: [NAME]`."}
    schema["required"] = [name for name in schema["required"] if name != "vms"]
    schema["oneOf"] = [{"required": ["vm"]}, {"required": ["vms"]}]
    item = properties["arms"]["items"]
    text = {"type": "string", "pattern": "^([1-9][0-9]*x[1-9][0-9]*|auto)$"}
    properties["arms"]["items"] = {"anyOf": [item, text]}
    properties["arms"] = {
        "description": properties["arms"].pop("description"),
        "anyOf": [properties["arms"], _crossing(schema)],
    }
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "vnuma study"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def _crossing(schema: dict[str, Any]) -> dict[str, Any]:
    """Crossed arms: each field of an arm takes one value or a list of them."""
    fields = {
        name: {"anyOf": [field, {"type": "array", "items": field, "minItems": 1}]}
        for name, field in schema["$defs"]["Arm"]["properties"].items()
        if name not in ("topology", "name")
    }
    topologies = {"type": "array", "minItems": 1, "items": {"type": "string"}}
    return {
        "type": "object",
        "required": ["topologies"],
        "additionalProperties": False,
        "properties": {"topologies": {"anyOf": [{"const": "all"}, topologies]}, **fields},
    }


def markdown() -> str:
    """Every field in a table, section by section."""
    parts = [_INTRODUCTION]
    for title, model in _SECTIONS:
        parts.append(f"## {title}\n\n{cleandoc(model.__doc__ or '')}\n\n{_table(model)}")
    return "\n".join(parts)


_INTRODUCTION = """# The study file

One YAML file describes one experiment. It is validated whole before anything is touched; a mistake is
reported with file, line, field and what would be right. Editors can use `study.schema.json` beside this file.
This page is written by `vnuma schema --format markdown`.

Two short forms: `vm: NAME` is `vms: [NAME]`, and an arm may be written as its topology alone (`- 2x8`).
Settings in `all_arms` hold for every arm that has none of its own.

Arms are written out as a list, or crossed as a mapping: factors multiply, and `topologies: all` is every
pair of divisors of the vCPUs:

```yaml
arms:
  topologies: all                              # or a list, as in [1x16, 2x8, auto]
  affinity: [none, {physical_cores: [0], spare: 1}]
  memory_reservation: locked                   # one value: the same in every arm
reference: 1x16 cpus=none
```

A list is a list of values; a value that is itself a list stands in a list of its own, as in
`affinity: [none, [0, 2, 4, 6]]`. These arms are called `1x16 cpus=none`, `1x16 cpus=cores@0+1`,
`2x8 cpus=none` and so on: the topology, then each factor that has several values. `reference` is one of
these names; `vnuma plan` lists them.

In every field `keep` leaves the VM's own value, `auto` and `none` hand the choice back to ESXi, and a value
is set, read back, and put back after the run. [arms.md](arms.md) says what each field becomes on which ESXi
release.
"""


def _table(model: type[BaseModel]) -> str:
    rows = ["| field | values | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        meaning = (field.description or "").replace("|", "\\|")
        rows.append(f"| `{name}` | {_values(model, name)} | {_default(model, name, field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _default(model: type[BaseModel], name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    if value is None or value == "":
        return "none"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    written = model.model_json_schema()["properties"][name]["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else written}`"


def _values(model: type[BaseModel], name: str) -> str:
    """What a field takes, read off the JSON Schema so that limits are the model's own."""
    schema = model.model_json_schema()
    return " or ".join(dict.fromkeys(_kind(part, schema) for part in _parts(schema["properties"][name])))


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return list(schema.get("anyOf", [schema]))


def _kind(part: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in part:
        return "a mapping, see below"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if part.get("type") == "string" and "pattern" in part and "examples" in part:
        return " or ".join(f"text as in `{example}`" for example in part["examples"])
    if part.get("type") == "array":
        items: dict[str, Any] = part.get("items") or next(iter(part.get("prefixItems", [])), {})
        return f"a list of {_kind(items, schema)}"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    word = words.get(str(part.get("type")), "a mapping" if part.get("type") == "object" else "none")
    limits = [f"from {part[key]}" for key in ("minimum",) if key in part]
    limits += [f"above {part[key]}" for key in ("exclusiveMinimum",) if key in part]
    limits += [f"to {part[key]}" for key in ("maximum",) if key in part]
    return " ".join([word, *limits])
