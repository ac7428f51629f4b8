"""Read a study file and report every problem with its line and the correct form."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

from pydantic import BaseModel, ValidationError

from vnuma.domain.arm.arm import Arm, PhysicalCores
from vnuma.domain.study.crossing import Crossing
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_checks import check_arms_workloads, check_design, check_workload
from vnuma.domain.topology.topology import topologies
from vnuma.domain.vm.bounded_input import NotYaml, read_yaml
from vnuma.domain.vm.plain_text import refuse_controls
from vnuma.domain.vm.validation import FIELD_FAULTS, message
from vnuma.domain.workloads.kinds import settings_type
from vnuma.domain.workloads.settings import Path, Problem
from vnuma.errors import InputError

MOST_VALUES = 10_000
DEEPEST = 40
EVERY_FIELD = "Every field is described in docs/reference/study.md."
"""Limits for a study file: the largest so far has 400 values on 6 levels."""


def parse_study(text: str, file: str) -> Study:
    """Read a study from YAML text; `file` is its name in messages.

    Raises InputError with every problem, each with file and line.
    """
    data = _load(text, file)
    if problems := list(strange_values(data)):
        raise _input_error(problems, data, file)
    crossing = _crossing(data)
    result = _validate(data) if crossing is None else _validate_crossed(data, crossing)
    if isinstance(result, Study):
        return result
    raise _input_error(result, data, file)


def _crossing(data: Any) -> Crossing | None:
    """The crossing of a file whose arms are a mapping; None if they are listed."""
    arms = data.get("arms")
    return Crossing(arms, data.get("vcpus")) if isinstance(arms, dict) else None


def _validate_crossed(data: Any, crossing: Crossing) -> Study | list[Problem]:
    """As `_validate`; a problem of an expanded arm is attributed to its factor."""
    problems = list(crossing.problems())
    result = problems or _validate({**data, "arms": crossing.arms()})
    if problems or isinstance(result, Study):
        return result
    return [
        replace(one, path=crossing.in_file(one.path), what=re.sub(r"^arms\.\d+\.", "arms.", one.what))
        for one in result
    ]


def _validate(data: Any) -> Study | list[Problem]:
    """The study, or every problem with it."""
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        found = [item for item in error.errors() if not _of_another_kind(item["loc"], data)]
        wrong = {item["loc"][: len(item["loc"]) - 1] for item in found}
        found = [item for item in found if item["type"] != "too_short" or item["loc"] not in wrong]
        return [*(_problem(item, data) for item in found), *_further_problems(found, data)]
    return list(check_study(study)) or study


def _further_problems(found: Sequence[Any], data: Any) -> list[Problem]:
    """Further problems where the fields' only fault is that some are unknown."""
    if any(item["type"] != "extra_forbidden" for item in found):
        return []
    known = deepcopy(data)
    for item in found:
        *outer, field = _real_path(item["loc"], data)[0]
        reduce(getitem, outer, known).pop(field, None)  # arms of a crossing may share a value
    rest = _validate(known)
    return [] if isinstance(rest, Study) else rest


def check_study(study: Study) -> Iterator[Problem]:
    """Contradictions between fields that are valid one by one."""
    seen: dict[str, int] = {}
    if study.vcpus is None and not all(arm.vcpus or arm.topology == "keep" for arm in study.arms):
        yield Problem(("vcpus",), "field 'vcpus' is missing.", EVERY_FIELD)
        return
    for index, arm in enumerate(study.arms):
        vcpus = arm.vcpus or study.vcpus
        made = arm.vcpu_count
        if made and vcpus and made != vcpus:
            yield Problem(
                ("arms", index, "topology"),
                f"topology {arm.topology} makes {made} vCPUs, but vcpus is {vcpus}.",
                f"Use one of {_all(vcpus)}, or set vcpus: {made}.",
            )
        if arm.vnuma_nodes and vcpus and vcpus % arm.vnuma_nodes:
            yield Problem(
                ("arms", index, "vnuma_nodes"),
                f"{vcpus} vCPUs cannot be spread evenly over {arm.vnuma_nodes} vNUMA nodes.",
                "Use a number that divides vcpus.",
            )
        if arm.label in seen:
            yield Problem(
                ("arms", index),
                f"arm '{arm.label}' is already the {_ordinal(seen[arm.label])} arm.",
                f"Remove one, or give it its own name: {{topology: {arm.topology}, name: ...}}. For an "
                "A/A check set design.a_a: true.",
            )
        seen.setdefault(arm.label, index)
    yield from _check_same(study)
    yield from _check_reference(study)
    misfits = list(check_arms_workloads(study))
    yield from misfits
    if study.reference in study.labels and not misfits:
        yield from check_design(study)
    yield from check_workload(study)


def _check_same(study: Study) -> Iterator[Problem]:
    """Two names for one configuration would be an unlabelled A/A column."""
    seen: list[Arm] = []
    for index, label in enumerate(study.labels):
        arm = study.arm(label)
        same = next((one.label for one in seen if one == arm.model_copy(update={"name": one.name})), None)
        if same is not None and same != label:
            yield Problem(
                ("arms", index),
                f"arm '{label}' is the same configuration as '{same}'.",
                "Remove one. For an A/A check set design.a_a: true.",
            )
        seen.append(arm)


def _check_reference(study: Study) -> Iterator[Problem]:
    if study.reference not in study.labels:
        yield Problem(
            ("reference",),
            f"the reference arm '{study.reference}' is not among the arms.",
            f"Use one of {', '.join(study.labels)}.",
        )


def strange_values(data: Any) -> Iterator[Problem]:
    """Values that no field allows and that would fail much later, during a run or its report.

    Aliases are followed, as the fields' reader does: a file of a few lines can expand to millions.
    """
    stack: list[tuple[Path, Any]] = [((), data)]
    seen = 0
    while stack:
        path, node = stack.pop()
        seen += 1
        if seen > MOST_VALUES or len(path) > DEEPEST:
            what = "the file is nested too deeply or expands to too many values."
            yield Problem(path[:1], what, f"A study has at most {MOST_VALUES:,} values on {DEEPEST} levels.")
            return
        if isinstance(node, dict):
            stack += [((*path, key), value) for key, value in node.items()]
            stack += [(path, key) for key in node if isinstance(key, str)]
        elif isinstance(node, list):
            stack += [((*path, index), value) for index, value in enumerate(node)]
        elif why := _strange(path, node):
            yield Problem(path, f"{_dotted(path)}: {why}.", "Write it without.")


def _strange(path: Path, value: object) -> str:
    """Why no field allows a value; empty for an ordinary one. Names are one line, other text may
    have more.
    """
    if isinstance(value, str):
        try:
            refuse_controls(value, lines=path[-1:] != ("name",) and path[:1] not in _NAMES)
        except ValueError as error:
            return str(error)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"an integer of {value.bit_length()} bits; at most 64 are allowed"
    return ""


_NAMES = (("vm",), ("vms",), ("name",), ("reference",))


def _load(text: str, file: str) -> Any:
    try:
        data = read_yaml(text)
    except NotYaml as error:
        what = f"{file}:{error.line}: not valid YAML: {error}."
        raise InputError(what, fix="Check that line and the one above it.") from None
    if not isinstance(data, dict):
        raise InputError(
            f"{file}:1: a study must be a mapping of fields; this file contains none.",
            fix="Start from studies/quick.yml.",
        )
    return data


def _problem(item: Any, data: Any) -> Problem:
    """A pydantic error as our Problem."""
    if item["loc"][:1] == ("vms",) and "vms" not in data and "vm" in data:
        what = f"vm: must be the name of one VM, not {_value_at(('vm',), data)}."
        return Problem(("vm",), what, "For several VMs: vms: [NAME, NAME].")
    path, in_union = _real_path(item["loc"], data)
    kind, field = item["type"], path[-1] if path else ""
    if item["loc"][-1:] == ("[key]",):
        allowed = (
            f"Names here must match {item['ctx']['pattern']}" if "pattern" in item.get("ctx", {}) else ""
        )
        return Problem(path, f"{_dotted(path[:-1])}: '{field}' is not a valid name.", allowed)
    if in_union:
        return Problem(
            path, f"{_dotted(path)}: {_value_at(path, data)} is not a valid value.", _choices(path, data)
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
    return Problem(path, f"{_dotted(path)}: {message(item)}{found if kind in FIELD_FAULTS else ''}.")


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


def _of_another_kind(loc: Sequence[int | str], data: Any) -> bool:
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


def _real_path(loc: Sequence[int | str], data: Any) -> tuple[Path, bool]:
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


def _dotted(path: Path) -> str:
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


def _input_error(problems: list[Problem], data: Any, file: str) -> InputError:
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


def _all(vcpus: int) -> str:
    return " ".join(str(topology) for topology in topologies(vcpus))


def _ordinal(index: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth")
    return words[index] if index < len(words) else f"{index + 1}th"
