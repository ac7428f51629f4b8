"""What a study says of a program that prints a figure, and how the figure is read from its output.

Reading is pure: the same output always gives the same figure.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from vnuma.domain.workloads.metric import Better, Metric
from vnuma.domain.workloads.settings import (
    GuestPart,
    Problem,
    Seconds,
    Size,
    WorkloadContext,
    WorkloadSettings,
)
from vnuma.words.plain_text import counted, first_line
from vnuma.words.validation import Strict
from vnuma.workloads.command.wrappers import programs_of

UNIT = "unit"
"""The named group of a regular expression that must show the metric's unit."""

_NUMBER = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d+)?")
_GOES_ON = re.compile(r"[.,]?\d|[eE][+-]?\d")
"""What continues a number whose beginning a group has matched."""
_SHOWN = 60
"""Characters of a text that a reason quotes."""


class Unreadable(Exception):
    """Why an output has no figure, as the end of a sentence."""


class Figure(Strict):
    """The figure that decides, and where the program's standard output shows it."""

    name: str = Field(min_length=1, description="The metric, as in `new orders`.")
    unit: str = Field(min_length=1, description="Its unit, as in `1/min`.")
    better: Better = Field(description="Whether a `higher` or a `lower` figure is better.")
    regex: str | None = Field(
        default=None,
        description=(
            "A regular expression with one group, the figure; lines begin with `^` and end with `$`. A "
            "group named `unit` must show the unit."
        ),
    )
    json_path: str | None = Field(
        default=None, description="A path in JSON output: `jobs.0.read.iops`; a number selects an item."
    )
    csv_column: str | None = Field(
        default=None, description="A column's heading in CSV output with one line below it."
    )

    @property
    def metric(self) -> Metric:
        """The figure as the analysed metric."""
        return Metric(self.name, self.unit, self.better)

    @model_validator(mode="after")
    def _one_way(self) -> Figure:
        ways = [way for way in (self.regex, self.json_path, self.csv_column) if way is not None]
        if len(ways) != 1:
            raise ValueError("a figure has one of regex, json_path and csv_column")
        if self.regex is not None:
            try:
                groups = re.compile(self.regex)
            except re.error as error:
                raise ValueError(f"'{self.regex}' is not a regular expression: {error}") from None
            if groups.groups - (UNIT in groups.groupindex) != 1:
                raise ValueError("the regular expression needs one group, the figure: (...)")
        return self

    def read(self, output: str) -> float:
        """The figure. Raises Unreadable: no figure, two figures, another unit, or a text."""
        found = list(self._found(output))
        if not found:
            raise Unreadable("it printed no figure")
        if len(found) > 1:
            first, second = (text[:_SHOWN] for text in found[:2])
            raise Unreadable(f"it printed {len(found)} figures, among them {first} and {second}")
        return number(_seconds(found[0]) if self.unit == "s" else found[0])

    def _found(self, output: str) -> Iterator[str]:
        if self.regex is not None:
            yield from self._matches(output)
        elif self.json_path is not None:
            yield _at(output, self.json_path)
        elif self.csv_column is not None:
            yield from _column(output, self.csv_column)

    def _matches(self, output: str) -> Iterator[str]:
        pattern = re.compile(str(self.regex), re.MULTILINE)
        own = pattern.groupindex.get(UNIT)
        for match in pattern.finditer(output):
            if own and match[own] != self.unit:
                raise Unreadable(f"its unit is {str(match[own])[:_SHOWN]!r}, not {self.unit!r}")
            (at,) = (at for at in range(1, pattern.groups + 1) if at != own)
            if match[at] is not None:
                if match[at][-1:].isdigit() and _GOES_ON.match(output, match.end(at)):
                    raise Unreadable(
                        f"the group ends within a number: {output[match.start(at) :][:_SHOWN]!r}"
                    )
                yield match[at]


_TIME = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")


def _seconds(text: str) -> str:
    """Seconds as they are; those of 00:01:31.867 together."""
    time = _TIME.fullmatch(text.strip())
    return str(int(time[1]) * 3600 + int(time[2]) * 60 + Decimal(time[3])) if time else text


def number(text: str) -> float:
    """A printed number, with or without commas between thousands. Raises Unreadable."""
    stripped = text.strip()
    if not any(map(str.isdigit, stripped)) or not _NUMBER.fullmatch(stripped):
        raise Unreadable(f"{text[:_SHOWN]!r} is not a number")
    value = float(stripped.replace(",", ""))
    if not math.isfinite(value):
        raise Unreadable(f"{text[:_SHOWN]!r} is not a finite number")
    return value


def _at(output: str, path: str) -> str:
    """The number at a path of a JSON document, as text. Raises Unreadable."""
    try:
        value = json.loads(output, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"its output is not valid JSON: {str(error)[:_SHOWN]}") from None
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise Unreadable(f"its JSON has no {path}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Unreadable(f"{path} of its JSON is not a number")
    return str(value)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object. Raises ValueError for one that has a key twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("an object has a key twice")
    return dict(pairs)


def _column(output: str, heading: str) -> Iterator[str]:
    """Every value below that heading. Raises Unreadable."""
    try:
        rows = [row for row in csv.reader(output.splitlines(), strict=True) if row]
    except csv.Error as error:
        raise Unreadable(f"its output is not valid CSV: {error}") from None
    headings = [name.strip() for name in rows[0]] if rows else []
    if headings.count(heading) != 1:
        raise Unreadable(f"its CSV has {headings.count(heading)} columns {heading!r}")
    at = headings.index(heading)
    for row in rows[1:]:
        if len(row) != len(headings):
            raise Unreadable(f"a line of its CSV has {len(row)} of {len(headings)} values")
        yield row[at]


PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z][a-z0-9_]*)\}")
"""A variable in a program's arguments or script; `${name}` is the shell's own."""

OUTPUT_KB = 16
"""Most that a program may print, in KiB; it is kept with each sample, and fits a field of samples.csv."""

Word = Annotated[str, Field(min_length=1)]
_Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Program = Annotated[
    Annotated[tuple[_Argument, ...], Field(min_length=1)] | Annotated[_Argument, Field(min_length=1)],
    Field(title="program"),
]
"""Arguments of a program, which no shell sees; or a script of the shell there."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,29}$")]
Form = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,29}$")]
Place = Annotated[str, StringConstraints(pattern=r"^/[^\x00-\x1f]{1,199}$")]


class Command(WorkloadSettings):
    """A program that prints a figure: any benchmark, in the guest or on a client host.

    A program is either a list of arguments, run without a shell, or a string, run by
    /bin/sh. `{size}`, `{form}` and `{NAME}` of `variables` are replaced in both.
    """

    size_word: ClassVar[str] = "as size"
    fixed_work: ClassVar[bool] = False
    factors: ClassVar[frozenset[str]] = frozenset({"variables"})
    keeps_output: ClassVar[bool] = True

    name: Literal["command"] = Field(description="The workload.")
    run: Program = Field(description="The program that is measured.")
    figure: Figure = Field(description="What it prints, and where.")
    sizes: tuple[Size, ...] = Field(default=(1,), min_length=1, description="Values of `{size}`.")
    forms: tuple[Form, ...] = Field(
        default=("run",), min_length=1, description="Values of `{form}`; the first one decides the verdict."
    )
    variables: Mapping[Name, str | int | float] = Field(
        default={}, description="Values of other variables, which an arm may set."
    )
    exit_codes: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        default=(0,), min_length=1, description="Exit codes that count; any other is a failed iteration."
    )
    client: Word | None = Field(
        default=None,
        description="The inventory's host where everything here runs; by default the guest.",
    )
    guest: Literal["shell", "sql_server"] = Field(
        default="shell",
        description=(
            "Who is asked for the guest's NUMA nodes. With `client` it may be `sql_server`: such a guest may "
            "run Windows, and needs no shell."
        ),
    )
    lasts_s: Seconds = Field(default=60, description="How long one run takes, for the plan's hours.")
    files: tuple[Place, ...] = Field(
        default=(), description="Files that must exist there; vnuma copies nothing."
    )
    setup: tuple[Program, ...] = Field(
        default=(), description="Programs to run once on every boot, before anything is measured."
    )
    teardown: tuple[Program, ...] = Field(
        default=(), description="Programs to run at each boot's end, also after a failure."
    )
    study_setup: tuple[Program, ...] = Field(
        default=(), description="Programs to run once, before the first boot is measured."
    )
    study_teardown: tuple[Program, ...] = Field(
        default=(), description="Programs that undo `study_setup` at restore; they may run more than once."
    )

    @property
    def needs(self) -> frozenset[GuestPart]:
        """Only what shows the guest's NUMA nodes; the program may run elsewhere."""
        return frozenset({self.guest})

    @property
    def runs_programs(self) -> bool:
        """Always."""
        return True

    @property
    def client_host(self) -> str | None:
        """The host where it runs; None: the guest."""
        return self.client

    def assumed_seconds(self, size: int, form: str) -> float:
        """As the study says."""
        return self.lasts_s

    def metric(self, form: str) -> Metric:
        """The figure."""
        return self.figure.metric

    def read_again(self, kept: Mapping[str, object]) -> float | None:
        """The figure of a kept output; None without one."""
        try:
            return self.figure.read(str(kept.get("stdout", "")))
        except Unreadable:
            return None

    def looks_at(self) -> tuple[str, ...]:
        """The files, and the programs of every list of arguments."""
        named = (name for _, program in self._parts() for name in _looked_for(program))
        return tuple(dict.fromkeys([*self.files, *named]))

    def may_install(self, name: str) -> bool:
        """Whether a program of study_setup or setup may install that one before it is first needed."""
        before = (*self.study_setup, *self.setup)
        return bool(before) and name not in (*self.files, *_looked_for(before[0]))

    def filled(self, program: Program, size: int | None = None, form: str | None = None) -> Program:
        """The program with its variables' values."""
        known = {"size": size, "form": form, **self.variables}
        values = {f"{{{name}}}": str(value) for name, value in known.items() if value is not None}
        return (
            _replaced(program, values)
            if isinstance(program, str)
            else tuple(_replaced(word, values) for word in program)
        )

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """A guest without a shell, variables without a value in some arm, those of the study that an arm
        sets, and those unused.
        """
        if self.guest == "sql_server" and self.client is None:
            yield Problem(
                ("workload", "guest"),
                "sql_server needs a client: the programs run by a shell.",
                "Name an inventory host as workload.client.",
            )
        arms = {arm.label: around.settings_of(arm.label) for arm in around.arms}
        own = {label: one.variables for label, one in arms.items() if isinstance(one, Command)}
        somewhere = {"size", "form", *self.variables}.union(*own.values())
        for label, variables in own.items():
            for part, program in self._parts():
                known = {*variables, *(("size", "form") if part == "run" else ())}
                asked = _names(program) if isinstance(program, tuple) else _names(program) & somewhere
                for name in sorted(asked - known):
                    yield Problem(
                        ("workload", part),
                        f"{{{name}}} has no value in arm {label}.",
                        "Give it one in workload.variables.",
                    )
                if part.startswith("study_"):
                    yield from self._changed(part, program, label, variables)
        used = set().union(*(_names(program) for _, program in self._parts()))
        for name in self.variables:
            if name not in used:
                yield Problem(
                    ("workload", "variables", name),
                    f"variable '{name}' is never used: no program contains {{{name}}}.",
                    "Remove it, or look for a typing error.",
                )

    def steps(self) -> Iterator[str]:
        """See `WorkloadSettings`."""
        where = f"on {self.client}" if self.client else "in the guest, as root"
        yield (
            f"The study's own programs run {where}. vnuma restores the VM, and what they change only by "
            "their own teardown."
        )
        for title, programs in (
            ("Before the first boot", self.study_setup),
            ("On each boot", (*self.setup, self.run, *self.teardown)),
            ("At restore", self.study_teardown),
        ):
            for program in programs:
                yield f"{title}: {whole(program)}"

    def summary(self) -> str:
        """The text in a plan."""
        return f"{shown(self.run)} with sizes {self.sizes_listed} ({', '.join(self.forms)})"

    def size_label(self, size: int) -> str:
        """`size 5`: the value of `{size}`."""
        return f"size {size:,}"

    def _changed(
        self, part: str, program: Program, label: str, variables: Mapping[str, object]
    ) -> Iterator[Problem]:
        """Variables with another value in an arm than in the study, which `study_teardown` is given."""
        for name in sorted(_names(program) & {*variables}):
            if variables[name] != self.variables.get(name):
                yield Problem(
                    ("workload", part),
                    f"{{{name}}} has another value in arm {label} than in the study.",
                    "Give it one value in workload.variables: this program runs once for all arms.",
                )

    def _parts(self) -> Iterator[tuple[str, Program]]:
        yield "run", self.run
        for part in ("setup", "teardown", "study_setup", "study_teardown"):
            for program in getattr(self, part):
                yield part, program


def shown(program: Program) -> str:
    """A program in a sentence: its command line, or its script's first line."""
    return shlex.join(program) if isinstance(program, tuple) else first_line(program.strip())


_LINES = 20
"""Most lines of a script that a plan shows."""


def whole(program: Program) -> str:
    """A program in a plan: its command line, or its script, whose lines follow the first indented."""
    lines = (shlex.join(program) if isinstance(program, tuple) else program.strip()).splitlines()
    more = len(lines) - _LINES
    rest = [f"... {counted(more, 'more line')}"] if more > 0 else []
    return "\n  ".join([*lines[:_LINES], *rest])


def _looked_for(program: Program) -> list[str]:
    """Names or paths of the programs in a list of arguments, without those that a variable names."""
    named = programs_of(program) if isinstance(program, tuple) else ()
    return [name for name in named if not PLACEHOLDER.search(name)]


def _replaced(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)


def _names(program: Program) -> set[str]:
    texts = (program,) if isinstance(program, str) else program
    return {name for text in texts for name in PLACEHOLDER.findall(text)}
