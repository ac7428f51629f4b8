"""What a library found wrong with a study, as problems with the user's own fields and lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from vnuma.domain.arm.arm import PhysicalCores
from vnuma.domain.study.study import Study
from vnuma.domain.workloads.kinds import settings_type
from vnuma.domain.workloads.settings import Path, Problem
from vnuma.errors import InputError
from vnuma.words.validation import FIELD_FAULTS, message

EVERY_FIELD = "Every field is described in docs/reference/study.md."


def problem_of(item: Any, data: Any) -> Problem:
    """A pydantic error as our Problem."""
    if item["loc"][:1] == ("vms",) and "vms" not in data and "vm" in data:
        what = f"vm: must be the name of one VM, not {_value_at(('vm',), data)}."
        return Problem(("vm",), what, "For several VMs: vms: [NAME, NAME].")
    path, in_union = real_path(item["loc"], data)
    kind, field = item["type"], path[-1] if path else ""
    if item["loc"][-1:] == ("[key]",):
        allowed = (
            f"Names here must match {item['ctx']['pattern']}" if "pattern" in item.get("ctx", {}) else ""
        )
        return Problem(path, f"{dotted(path[:-1])}: '{field}' is not a valid name.", allowed)
    if in_union:
        return Problem(
            path, f"{dotted(path)}: {_value_at(path, data)} is not a valid value.", _choices(path, data)
        )
    if kind == "extra_forbidden":
        known = _known_fields(path[:-1], data)
        close = difflib.get_close_matches(str(field), known, n=1) or _elsewhere(str(field), data)
        fix = f"Did you mean '{close[0]}'?" if close else f"Known fields here: {', '.join(sorted(known))}."
        return Problem(path, f"unknown field '{field}'.", fix)
    if kind == "missing":
        return Problem(path, f"field '{field}' is missing.", EVERY_FIELD)
    value = _value_at(path, data)
    found = "" if value is None or len(value) > _QUOTED else f", not {value}"
    return Problem(path, f"{dotted(path)}: {message(item)}{found if kind in FIELD_FAULTS else ''}.")


_QUOTED = 40
"""Most characters of an invalid value that a message repeats."""


def _elsewhere(field: str, data: Any) -> list[str]:
    """A field of that name in one of the file's sections."""
    for section in Study.model_fields:
        model = _model_of(Study, section, data) if section not in ("workload", "arms") else None
        for close in difflib.get_close_matches(field, model.model_fields if model else (), n=1):
            return [f"{section}.{close}"]
    return []


# Fields that allow a mapping or other types: pydantic puts the model's name into the location.
_MAPPING_KINDS = frozenset({PhysicalCores.__name__})


def of_another_kind(loc: Sequence[int | str], data: Any) -> bool:
    """Whether an error is about an alternative type that the file does not use: a mapping is
    checked as one.
    """
    node = data
    for step in loc:
        if isinstance(node, dict):
            if step not in node and str(step).startswith(("literal[", "tuple[")):
                return True
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
    return False


def real_path(loc: Sequence[int | str], data: Any) -> tuple[Path, bool]:
    """The file's keys in `loc`, and whether it continues into a branch of a union.

    pydantic adds the branch's name to the location, which is not a key of the file.
    """
    path: list[int | str] = []
    node = data
    for step in loc:
        if isinstance(node, dict) and step in _MAPPING_KINDS:
            continue
        if isinstance(node, dict):
            path.append(step)
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int):
            path.append(step)
            node = node[step] if step < len(node) else None
        elif node is None or (path and step == "topology"):
            return tuple(path), False
        else:
            return tuple(path), True
    return tuple(path), False


def dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _value_at(path: Path, data: Any) -> str | None:
    """A value as quoted in messages; None if the file has none there."""
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return f"'{data}'" if isinstance(data, str) else str(data)


def _choices(path: Path, data: Any) -> str:
    """The values that a field with several types allows, from its description."""
    model: type[BaseModel] | None = Study
    for step in path[:-1]:
        if isinstance(step, str) and model:
            model = _model_of(model, step, data)
    info = model.model_fields.get(str(path[-1])) if model else None
    return info.description or "" if info else ""


def _known_fields(path: Path, data: Any) -> list[str]:
    model: type[BaseModel] | None = Study
    for step in path:
        if isinstance(step, int):
            continue
        model = _model_of(model, step, data) if model else None
    return list(model.model_fields) if model else []


def _model_of(model: type[BaseModel], field: str, data: Any) -> type[BaseModel] | None:
    """The model of a field; for a workload's section, the one that the file names."""
    if model is Study and field == "workload":
        return settings_type(str(data["workload"].get("name", "cross_join")))
    info = model.model_fields.get(field)
    if info is None:
        return None
    candidates = [info.annotation, *getattr(info.annotation, "__args__", ())]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def input_error(problems: list[Problem], data: Any, file: str) -> InputError:
    unique = dict.fromkeys((_line(problem.path, data), problem.what, problem.fix) for problem in problems)
    lines = [f"{file}:{line}: {what}" + (f"\n  {fix}" if fix else "") for line, what, fix in sorted(unique)]
    return InputError("\n".join(lines))


def _line(path: Path, data: Any) -> int:
    """The 1-based line of the deepest key of `path` in the file."""
    node, line = data, 1
    for step in path:
        position = getattr(node, "lc", None)
        if position is None:
            break
        try:
            line = (position.key(step) if isinstance(node, dict) else position.item(step))[0] + 1
            node = node[step]
        except (KeyError, IndexError, TypeError):
            break
    return line
