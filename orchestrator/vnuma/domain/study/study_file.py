"""Read a study file and report every problem with its line and the correct form."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import product
from math import prod
from operator import getitem
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from vnuma.domain.arm.arm import Arm, PhysicalCores, short_name
from vnuma.domain.study.order import blocks_of_square, columns
from vnuma.domain.study.study import Study
from vnuma.domain.topology.topology import topologies
from vnuma.domain.workloads.kinds import settings_type
from vnuma.domain.workloads.settings import Path, Problem
from vnuma.errors import InputError
from vnuma.words.bounded_yaml import NotYaml, read_yaml
from vnuma.words.plain_text import refuse_controls
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
    info = _known_fields(path[:-1], data).get(str(path[-1]))
    return info.description or "" if info else ""


def _known_fields(path: Path, data: Any) -> dict[str, FieldInfo]:
    """The fields of the section at that path; none for an unknown section."""
    model: type[BaseModel] | None = Study
    for step in path:
        if not isinstance(step, int):
            model = _model_of(model, step, data) if model else None
    return model.model_fields if model else {}


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


_Rule = tuple[bool, str, str, str]
"""Whether a design breaks it; the field, what is wrong, and what to do."""


def check_design(study: Study) -> Iterator[Problem]:
    """Contradictory stopping rules, incomplete squares, a doubtful control."""
    for broken, field, what, fix in (*_on_stopping(study), *_on_order(study), *_on_control(study)):
        if broken:
            yield Problem(("design", field), what, fix)


_FEWEST_TO_DECIDE = 6


def _on_stopping(study: Study) -> Iterator[_Rule]:
    """Arms that leave need whole random blocks, and nothing else that ends the study by its intervals."""
    design, given, decided = study.design, study.design.model_fields_set, study.design.stop == "decided"
    rule = "stop: decided" if decided else "precision"
    yield (
        design.may_end_early and "blocks" in given,
        "blocks",
        f"design.blocks and {rule} both set when the study ends.",
        f"Keep one. With {rule}, design.max_blocks limits the number of blocks.",
    )
    yield (
        not design.may_end_early and "max_blocks" in given,
        "max_blocks",
        "design.max_blocks limits a study that may end early, and this one has a fixed end.",
        "Set design.blocks instead, or add stop: decided.",
    )
    yield (
        decided and design.precision is not None,
        "precision",
        "design.precision and stop: decided both end the study by its intervals.",
        "Keep one. With stop: decided each arm leaves as soon as it has a verdict.",
    )
    yield (
        decided and design.order != "randomised",
        "stop",
        f"stop: decided is for randomised order, not {design.order}: arms leave, so that later "
        "blocks have fewer.",
        "Set order: randomised, or design.blocks instead of stop.",
    )
    yield (
        decided and design.max_blocks < _FEWEST_TO_DECIDE,
        "max_blocks",
        f"design.max_blocks: {design.max_blocks} ends the study before block {_FEWEST_TO_DECIDE}, "
        "the first after which an arm may be called equivalent.",
        f"Set max_blocks: {_FEWEST_TO_DECIDE} or more; vnuma power STUDY advises a number.",
    )


def _on_order(study: Study) -> Iterator[_Rule]:
    """A truncated square is not balanced; truncation by a stopping rule is not predicted here. In fixed order
    place and arm are confounded, and a square has every place as a factor.
    """
    design, width = study.design, len(columns(study))
    square = blocks_of_square(design.order, width)
    field = "max_blocks" if design.may_end_early else "blocks"
    yield (
        design.most_blocks % square != 0,
        field,
        f"{design.order} with {width} columns a block (arms, and A/A) is balanced over {square} blocks, not "
        f"{design.most_blocks}.",
        f"Set design.{field}: {max(1, round(design.most_blocks / square)) * square}, or order: randomised.",
    )
    yield (
        design.covariate != "none" and design.order != "randomised",
        "covariate",
        f"covariate: {design.covariate} is for randomised order, not {design.order}.",
        "Remove covariate, or set order: randomised.",
    )


def _on_control(study: Study) -> Iterator[_Rule]:
    if study.control_arm is None:
        return
    offered = study.workload.offers_control
    yield (
        not offered,
        "control",
        f"the workload {study.workload.name} has no positive control inside the guest.",
        "Set control: none.",
    )
    yield (
        offered and study.workload_of(study.reference).maxdop_hint != 1,
        "control",
        "the positive control limits SQL Server to one node's CPUs: a parallel plan would also lose workers.",
        "Set maxdop: 1 for the reference arm, or control: none.",
    )
    yield (
        study.control_arm in study.labels,
        "control",
        f"the positive control is called '{study.control_arm}', but an arm has the same name.",
        "Rename that arm.",
    )


def check_workload(study: Study) -> Iterator[Problem]:
    """Repeated sizes and forms, arms that differ in fixed fields, and the workload's own rules."""
    named: tuple[tuple[Path, Sequence[object]], ...] = (
        (("vms",), study.vms),
        (("workload", "sizes"), study.workload.sizes),
        (("workload", "forms"), study.workload.forms),
    )
    for path, values in named:
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Problem((*path, index), f"{value} is listed twice.", "Remove one.")
    yield from _published_figures(study)
    yield from study.workload.problems(study.workload_context)


def _published_figures(study: Study) -> Iterator[Problem]:
    """Published ratios of figures that this workload does not have, so that nothing could be compared."""
    known = [figure.name for figure in study.workload.figures]
    for form, ratios in (study.published.figure_ratios if study.published else {}).items():
        for name in ratios:
            if name not in known:
                yield Problem(
                    ("published", "figure_ratios", form, name),
                    f"the workload {study.workload.name} has no figure '{name}' besides its metric.",
                    f"It tells {', '.join(known) or 'none'}.",
                )


def check_arms_workloads(study: Study) -> Iterator[Problem]:
    """Workload fields in arms: known, variable, and with a valid value."""
    workload = study.workload
    factors = ", ".join(sorted(workload.factors)) or "none"
    for index, arm in enumerate(study.arms):
        if arm.maxdop != "keep" and "maxdop" not in type(workload).model_fields:
            yield Problem(
                ("arms", index, "maxdop"),
                f"the workload {workload.name} has no MAXDOP hint.",
                "Remove maxdop from its arms.",
            )
        strangers = [field for field in arm.workload if field not in workload.factors]
        for field in strangers:
            yield Problem(
                ("arms", index, "workload", field),
                f"'{field}' of the workload {workload.name} cannot differ between arms.",
                f"These can: {factors}.",
            )
        if not strangers:
            yield from _misfits(study, index, arm.workload)


def _misfits(study: Study, index: int, own: Mapping[str, object]) -> Iterator[Problem]:
    try:
        type(study.workload).model_validate({**study.workload.model_dump(), **own})
    except ValidationError as error:
        for item in error.errors():
            yield Problem(
                ("arms", index, "workload", *item["loc"]),
                f"workload.{'.'.join(map(str, item['loc']))}: {message(item)}.",
                "",
            )


MOST_ARMS = 100
"""An experiment with more arms would never end."""

MOST_LETTERS = 40
"""The longest name of an arm."""

_WORDS = {"physical_cores": "cores"}


class Crossing:
    """A crossing in a study file, and the arms that it expands to."""

    def __init__(self, written: Mapping[str, Any], vcpus: object) -> None:
        self._written = written
        self._counts = _values(written.get("vcpus", vcpus))
        self.factors = {
            name: _values(value) for name, value in written.items() if name not in ("topologies", "vcpus")
        }

    def arms(self) -> list[dict[str, Any]]:
        """The expanded arms: topology by topology, the last factor fastest."""
        several = [name for name, values in self.factors.items() if len(values) > 1]
        made = []
        for topology, vcpus in self._topologies():
            for values in product(*self.factors.values()):
                settings = dict(zip(self.factors, values, strict=True))
                words = [f"{topology}" if topology != "auto" else f"auto{vcpus or ''}"]
                words += [f"{short_name(name)}={_text(settings[name])}" for name in several]
                arm = {"topology": topology, **settings}
                if "vcpus" in self._written:
                    arm["vcpus"] = vcpus
                if len(words) > 1 or topology == "auto":
                    arm["name"] = " ".join(words)
                made.append(arm)
        return made

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the crossing itself; its arms are checked as arms."""
        if "topologies" not in self._written:
            yield Problem(("arms",), "crossed arms need topologies.", "Write topologies: all, or a list.")
        if self._count() > MOST_ARMS:
            yield self._too_many(self._count())
            return
        for name, values in (*self.factors.items(), ("topologies", self._given())):
            if not values:
                yield Problem(("arms", name), f"{name} has no values.", "Give at least one, or remove it.")
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield Problem(("arms", name), f"{name} has {_text(value)} twice.", "Remove one.")
        arms = self.arms()
        if len(arms) > MOST_ARMS:
            yield self._too_many(len(arms))
        for arm in arms:
            if len(arm.get("name", "")) > MOST_LETTERS:
                yield Problem(
                    ("arms",),
                    f"the arm's name '{arm['name']}' is longer than {MOST_LETTERS} letters.",
                    "Write the arms out and name each.",
                )
                return

    @staticmethod
    def _too_many(made: int) -> Problem:
        return Problem(("arms",), f"the factors make {made:,} arms.", f"Cross at most {MOST_ARMS}.")

    def _count(self) -> int:
        """A lower bound of its number of arms, without expanding them: a few lines can cross to billions."""
        given = len(self._given()) if self._written.get("topologies") != "all" else 1
        return (
            max(1, len(self._counts)) * given * prod(max(1, len(values)) for values in self.factors.values())
        )

    def in_file(self, path: Path) -> Path:
        """The path in the file for a path in the expanded arms."""
        if path[:1] != ("arms",) or len(path) < 2:
            return path
        field = {"topology": "topologies"}.get(str(path[2]), str(path[2])) if len(path) > 2 else ""
        return ("arms", field) if field in self._written else ("arms",)

    def _topologies(self) -> Iterator[tuple[Any, Any]]:
        for count in self._counts:
            if self._written.get("topologies") == "all":
                valid = isinstance(count, int) and 0 < count <= 768
                for topology in topologies(count) if valid else ():
                    yield str(topology), count
            else:
                for topology in self._given():
                    yield topology, count

    def _given(self) -> list[Any]:
        return _values(self._written.get("topologies", []))


def _values(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(value: object) -> str:
    """A factor's value in a name: short, and always the same."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        numbers = [str(number) for number in value]
        return ",".join(numbers) if len(numbers) < 4 else f"{numbers[0]}..{numbers[-1]}"
    if isinstance(value, Mapping):
        if "physical_cores" in value or "spare" in value:
            spare = f"+{value['spare']}" if value.get("spare") else ""
            return f"cores@{_text(value.get('physical_cores', 'fewest'))}{spare}".replace("@fewest", "")
        return ",".join(f"{str(key).rpartition('.')[2]}:{_text(item)}" for key, item in value.items())
    return _WORDS.get(str(value), str(value))


MOST_VALUES = 10_000
DEEPEST = 40
"""Limits for a study file: the largest so far has 400 values on 6 levels."""


@lru_cache(maxsize=64)
def parse_study(text: str, file: str) -> Study:
    """Read a study from YAML text; `file` is its name in messages. A text is read once in a process.

    Raises InputError with every problem, each with file and line.
    """
    data = _load(text, file)
    if problems := list(strange_values(data)):
        raise input_error(problems, data, file)
    arms = data.get("arms")
    crossing = Crossing(arms, data.get("vcpus")) if isinstance(arms, dict) else None
    result = _validate(data) if crossing is None else _validate_crossed(data, crossing)
    if isinstance(result, Study):
        return result
    raise input_error(result, data, file)


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
        found = [item for item in error.errors() if not of_another_kind(item["loc"], data)]
        wrong = {item["loc"][: len(item["loc"]) - 1] for item in found}
        found = [item for item in found if item["type"] != "too_short" or item["loc"] not in wrong]
        return [*(problem_of(item, data) for item in found), *_further_problems(found, data)]
    return list(check_study(study)) or study


def _further_problems(found: Sequence[Any], data: Any) -> list[Problem]:
    """Further problems where the fields' only fault is that some are unknown."""
    if any(item["type"] != "extra_forbidden" for item in found):
        return []
    known = deepcopy(data)
    for item in found:
        *outer, field = real_path(item["loc"], data)[0]
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
    if study.reference not in study.labels:
        yield Problem(
            ("reference",),
            f"the reference arm '{study.reference}' is not among the arms.",
            f"Use one of {', '.join(study.labels)}.",
        )
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
            yield Problem(path, f"{dotted(path)}: {why}.", "Write it without.")


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
