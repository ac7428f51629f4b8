"""Read a study file and report every problem with its line and the correct form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

from pydantic import ValidationError

from vnuma.domain.arm.arm import Arm
from vnuma.domain.study import study_errors
from vnuma.domain.study.crossing import Crossing
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_checks import check_arms_workloads, check_design, check_workload
from vnuma.domain.topology.topology import topologies
from vnuma.domain.workloads.settings import Path, Problem
from vnuma.errors import InputError
from vnuma.words.bounded_input import NotYaml, read_yaml
from vnuma.words.plain_text import refuse_controls

MOST_VALUES = 10_000
DEEPEST = 40
"""Limits for a study file: the largest so far has 400 values on 6 levels."""


def parse_study(text: str, file: str) -> Study:
    """Read a study from YAML text; `file` is its name in messages.

    Raises InputError with every problem, each with file and line.
    """
    data = _load(text, file)
    if problems := list(strange_values(data)):
        raise study_errors.input_error(problems, data, file)
    crossing = _crossing(data)
    result = _validate(data) if crossing is None else _validate_crossed(data, crossing)
    if isinstance(result, Study):
        return result
    raise study_errors.input_error(result, data, file)


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
        found = [item for item in error.errors() if not study_errors.of_another_kind(item["loc"], data)]
        wrong = {item["loc"][: len(item["loc"]) - 1] for item in found}
        found = [item for item in found if item["type"] != "too_short" or item["loc"] not in wrong]
        return [*(study_errors.problem_of(item, data) for item in found), *_further_problems(found, data)]
    return list(check_study(study)) or study


def _further_problems(found: Sequence[Any], data: Any) -> list[Problem]:
    """Further problems where the fields' only fault is that some are unknown."""
    if any(item["type"] != "extra_forbidden" for item in found):
        return []
    known = deepcopy(data)
    for item in found:
        *outer, field = study_errors.real_path(item["loc"], data)[0]
        reduce(getitem, outer, known).pop(field, None)  # arms of a crossing may share a value
    rest = _validate(known)
    return [] if isinstance(rest, Study) else rest


def check_study(study: Study) -> Iterator[Problem]:
    """Contradictions between fields that are valid one by one."""
    seen: dict[str, int] = {}
    if study.vcpus is None and not all(arm.vcpus or arm.topology == "keep" for arm in study.arms):
        yield Problem(("vcpus",), "field 'vcpus' is missing.", study_errors.EVERY_FIELD)
        return
    for index, arm in enumerate(study.arms):
        vcpus = arm.vcpus or study.vcpus
        made = arm.vcpu_count
        if made and vcpus and made != vcpus:
            yield Problem(
                ("arms", index, "topology"),
                f"topology {arm.topology} makes {made} vCPUs, but vcpus is {vcpus}.",
                f"Use one of {' '.join(map(str, topologies(vcpus)))}, or set vcpus: {made}.",
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
            yield Problem(path, f"{study_errors.dotted(path)}: {why}.", "Write it without.")


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
            fix="Its fields: vnuma schema --format markdown",
        )
    return data


def _ordinal(index: int) -> str:
    words = ("first", "second", "third", "fourth", "fifth")
    return words[index] if index < len(words) else f"{index + 1}th"
