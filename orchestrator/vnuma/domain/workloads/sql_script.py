"""What a study says of its own T-SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from vnuma.domain.problem import Path, Problem
from vnuma.domain.workloads.cross_join import CLOCK_MEANING, PLAN_MEANING, ClockChoice, PlanChoice
from vnuma.domain.workloads.settings import Size, WorkloadSettings

if TYPE_CHECKING:
    from vnuma.domain.study import Study

SIZE = "size"
"""The variable that every script has: `$(size)`."""

VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
"""How a script names a variable: as sqlcmd does."""

Text = Annotated[str, StringConstraints(min_length=1)]
StatementName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,29}$")]


class SqlScript(WorkloadSettings):
    """Your own T-SQL, timed as the other workloads are: each statement in each size on every boot.

    `$(name)` is replaced by a parameter, `$(size)` by the size, as text, as sqlcmd does it. Batches of
    setup and teardown are separated by lines that say GO.
    """

    size_word: ClassVar[str] = "as size"
    factors: ClassVar[frozenset[str]] = frozenset({"parameters", "setup"})

    name: Literal["sql_script"] = Field(description="The workload.")
    statements: Mapping[StatementName, Text] = Field(
        min_length=1,
        description=(
            "Name -> the statement that is timed: one alone, or a procedure's call. The first decides."
        ),
    )
    sizes: tuple[Size, ...] = Field(default=(1,), min_length=1, description="Values of `$(size)`.")
    parameters: Mapping[str, str | int | float] = Field(
        default={}, description="Values of other variables: `{region: EU}` replaces `$(region)` by EU."
    )
    setup: str = Field(default="", description="Batches to run once on every boot, before anything is timed.")
    teardown: str = Field(default="", description="Batches to run at each boot's end, also after a failure.")
    database: str = Field(
        default="",
        description=(
            "The database to run in. Empty: the study's own (dataset.database), made and dropped by vnuma; "
            "any other is left as your script leaves it."
        ),
    )
    times: Literal["statement", "procedure"] = Field(
        default="statement",
        description=(
            "`statement`: exactly one execution time must come; `procedure`: the last one counts, which is "
            "the whole call's."
        ),
    )
    rows_from: Literal["rowcount", "result", "none"] = Field(
        default="rowcount",
        description=(
            "What proves that the work was done: ROWCOUNT_BIG(), the first column of a single result row, or "
            "nothing (natively compiled procedures reset the count)."
        ),
    )
    expected_rows: Mapping[StatementName, int] = Field(
        default={},
        description=(
            "Name -> rows of each execution. Without it the first execution of a statement and size in the "
            "run tells, and every later one must give as many."
        ),
    )
    plan: PlanChoice = Field(default="actual", description=PLAN_MEANING)
    clock: ClockChoice = Field(default="auto", description=CLOCK_MEANING)

    @property
    def forms(self) -> tuple[str, ...]:
        """The statements' names."""
        return tuple(self.statements)

    def problems(self, study: Study) -> Iterator[Problem]:
        """Variables that have no value, and expectations of statements that there are not."""
        for label in study.labels:
            own = study.workload_of(label)
            if isinstance(own, SqlScript):
                yield from _undefined(own, label)
        for name in self.expected_rows:
            if name not in self.statements:
                yield Problem(
                    ("workload", "expected_rows", name),
                    f"expected_rows names '{name}', which is no statement.",
                    f"There are {', '.join(self.statements)}.",
                )

    def waits_for(self) -> str | None:
        """A database of the user's own has to be online before a boot is measured."""
        return self.database or None

    def summary(self) -> str:
        """As the plan says it."""
        return f"the study's own T-SQL ({', '.join(self.forms)})"

    def size_label(self, size: int) -> str:
        """`size 5`: what `$(size)` stands for."""
        return f"size {size:,}"


def _undefined(script: SqlScript, label: str) -> Iterator[Problem]:
    known = {SIZE, *script.parameters}
    places = (("setup", script.setup), ("teardown", script.teardown))
    named: list[tuple[Path, str]] = [(("workload", place), text) for place, text in places]
    named += [(("workload", "statements", name), text) for name, text in script.statements.items()]
    for path, text in named:
        for variable in dict.fromkeys(VARIABLE.findall(text)):
            in_boots_batches = variable == SIZE and path[1] != "statements"
            if variable not in known or in_boots_batches:
                why = "differs within a boot" if in_boots_batches else f"has no value in arm {label}"
                yield Problem(path, f"$({variable}) {why}.", "Give it one in workload.parameters.")
