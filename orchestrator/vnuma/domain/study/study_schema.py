"""The study file's JSON Schema and its documentation, generated from the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vnuma.domain.arm.arm import Arm, ArmSettings, PhysicalCores, SetsVmSettings, declared
from vnuma.domain.study.study import (
    AllowedHours,
    Dataset,
    Design,
    Evidence,
    Limits,
    PowerRules,
    Published,
    Quiet,
    Study,
)
from vnuma.domain.vm.setting import needs_power_off
from vnuma.domain.workloads.kinds import shipped


def _sections() -> tuple[tuple[str, type[BaseModel]], ...]:
    return (
        ("The study", Study),
        ("arms: each arm", Arm),
        ("all_arms", ArmSettings),
        ("affinity: a mapping", PhysicalCores),
        ("design", Design),
        *(section for name, kind in shipped().items() for section in _of_workload(name, kind)),
        ("dataset", Dataset),
        ("power", PowerRules),
        ("quiet", Quiet),
        ("evidence", Evidence),
        ("limits", Limits),
        ("allowed_hours", AllowedHours),
        ("published", Published),
    )


def _of_workload(name: str, kind: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """A workload's fields, then those of each field that is a mapping of its own."""
    yield f"workload: {name}", kind
    for field, info in kind.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield f"workload: {name}, {field}", info.annotation


def json_schema() -> str:
    """The schema as JSON text, for editors. Also allows `vm` and arms written as a topology alone."""
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
    """Crossed arms: each field of an arm allows one value or a list of them."""
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
    """Every field in tables by section; a meaning that several sections share is written once."""
    parts = [_INTRODUCTION]
    written: dict[str, str] = {}
    for title, model in _sections():
        body = _ALL_ARMS if model is ArmSettings else _table(model, written, title)
        body += f"\n{_what_arms_set()}" if model is Arm else ""
        parts.append(f"## {title}\n\n{cleandoc(model.__doc__ or '')}\n\n{body}")
    return "\n".join(parts)


_INTRODUCTION = """# The study file

One YAML file describes one experiment. It is validated whole before anything is touched; a mistake is
reported with file, line, field and a correction. Editors can use [study.schema.json](../study.schema.json).
`vnuma schema --format markdown` writes this page.

Short forms: `vm: NAME` is `vms: [NAME]`, and an arm may be its topology alone (`- 2x8`).

Arms are a list, or crossed as a mapping: factors multiply, and `topologies: all` is every pair of divisors of
the vCPUs:

```yaml
arms:
  topologies: all                              # or a list, as in [1x16, 2x8, auto]
  affinity: [none, {physical_cores: [0], spare: 1}]
  memory_reservation: locked                   # one value: the same in every arm
reference: 1x16 cpus=none
```

A value that is itself a list stands in a list of its own: `affinity: [none, [0, 2, 4, 6]]`. Crossed arms are
called `1x16 cpus=none`, `1x16 cpus=cores@0+1`, `2x8 cpus=none` and so on: the topology, then each factor that
has several values. `vnuma plan` lists the names.

In every field `keep` leaves the VM's own value, `auto` and `none` hand the choice back to ESXi, and a value
is set, read back, and restored after the run. [arms.md](../arms.md) says which settings give a number of
vNUMA nodes on which ESXi release. Mappings have their own section.
"""

_ALL_ARMS = """Fields, values and defaults are those of [each arm](#arms-each-arm), except `topology`,
`vcpus`, `name`, `vnuma_nodes` and `workload`, which only an arm has.
"""

# Words that are linked to where they were explained before.
_LONG = 8


def _table(model: type[BaseModel], written: dict[str, str], title: str) -> str:
    """A model's fields; `written` has the section of each meaning so far."""
    rows = ["| field | values | default | meaning |", "|---|---|---|---|"]
    properties = model.model_json_schema()["properties"]  # so that limits are the model's own
    for name, field in model.model_fields.items():
        meaning = (field.description or "").replace("|", "\\|")
        before = written.setdefault(f"{name}: {meaning}", title)
        if before != title and len(meaning.split()) > _LONG:
            meaning = f"As in [{before}](#{before.replace(': ', '-')})."
        values, default = _values(properties[name]), _default(field, properties[name])
        rows.append(f"| `{name}` | {values} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _what_arms_set() -> str:
    """What each field of an arm becomes, from its declaration and its settings'."""
    rows = [
        "Fields of the VM are read back from vSphere; *seen in* says where a boot shows them besides.",
        "",
        "| field | becomes | since | takes effect | seen in |",
        "|---|---|---|---|---|",
    ]
    for name, item in declared().items():
        if isinstance(item, SetsVmSettings):
            since = item.since.words if item.since else "all"
            when = "at power-on" if any(map(needs_power_off, item.settings)) else "at once"
            rows.append(f"| `{name}` | {', '.join(item.settings)} | {since} | {when} | {item.seen} |")
        else:
            rows.append(f"| `{name}` | {item.what} | all | at each cell | {item.seen} |")
    return "\n".join(rows) + "\n"


def _default(field: FieldInfo, schema: dict[str, Any]) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "below"
    if value is None or value == "":
        return "none"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else schema['default']}`"


def _values(schema: dict[str, Any]) -> str:
    """A field's values, from its JSON Schema. A title in lower case is the name of a type of its own."""
    if schema.get("title", "").islower():
        return str(schema["title"])
    return " or ".join(dict.fromkeys(map(_kind, schema.get("anyOf", [schema]))))


def _kind(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return "mapping"
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if part.get("type") == "string" and "pattern" in part and "examples" in part:
        return " or ".join(f"text as in `{example}`" for example in part["examples"])
    if part.get("type") == "array":
        items: dict[str, Any] = part.get("items") or next(iter(part.get("prefixItems", [])), {})
        return "list of " + re.sub("integer|mapping|program", r"\g<0>s", _values(items))
    words = {"integer": "integer", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    word = words.get(str(part.get("type")), "mapping" if part.get("type") == "object" else "none")
    return f"{word} {_limits(part)}".rstrip()


def _limits(part: dict[str, Any]) -> str:
    """The range of a number, as in `1 to 64` or `> 0`; empty without one."""
    low = [
        f"{sign} {part[key]}" for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">")) if key in part
    ]
    if "maximum" not in part:
        return "".join(low)
    return (
        f"{part['minimum']} to {part['maximum']}"
        if "minimum" in part
        else " and ".join([*low, f"<= {part['maximum']}"])
    )
