"""What a study says of its own T-SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from vnuma.domain.workloads.problem import Problem
from vnuma.domain.workloads.settings import (
    CLOCK_MEANING,
    PLAN_MEANING,
    ClockChoice,
    PlanChoice,
    Size,
    WorkloadContext,
    WorkloadSettings,
)
from vnuma.workloads.sql_script.problems import not_timeable, undefined, unknown_expectations, unused


def _plain(value: object) -> object:
    """Scripts mean literal text where YAML reads a date, a boolean or null."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return value
    raise ValueError(f"{value} is neither text nor a number in YAML; quote it")


def _some(text: str) -> str:
    """Raise for a blank statement, which has nothing to time."""
    if not text.strip():
        raise ValueError("it contains no statement")
    return text


Text = Annotated[str, AfterValidator(_some)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value = Annotated[str | int | float, BeforeValidator(_plain)]
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
            "Name -> the statement that is timed: a single statement, or a procedure call. The first "
            "decides the verdict."
        ),
    )
    sizes: tuple[Size, ...] = Field(default=(1,), min_length=1, description="Values of `$(size)`.")
    parameters: Mapping[Variable, Value] = Field(
        default={}, description="Values of other variables: `{region: EU}` replaces `$(region)` by EU."
    )
    setup: str = Field(default="", description="Batches to run once on every boot, before anything is timed.")
    teardown: str = Field(default="", description="Batches to run at each boot's end, also after a failure.")
    database: str = Field(
        default="",
        description=(
            "The database to run in. Empty: the study's own (dataset.database), created and dropped by "
            "vnuma; any other is left as your script leaves it."
        ),
    )
    times: Literal["statement", "procedure"] = Field(
        default="statement",
        description=(
            "`statement`: exactly one execution time must come; `procedure`: the statement is one EXEC, "
            "and the last time counts, which is the whole call's."
        ),
    )
    rows_from: Literal["rowcount", "result", "none"] = Field(
        default="rowcount",
        description=(
            "What proves that the work was done: ROWCOUNT_BIG(), the first column of a single result "
            "row, or nothing (natively compiled procedures reset the count)."
        ),
    )
    expected_rows: Mapping[StatementName, Annotated[int, Field(ge=0)]] = Field(
        default={},
        description=(
            "Name -> rows of each execution. By default, every execution of a statement and size must "
            "return as many rows as the first in the run."
        ),
    )
    plan: PlanChoice = Field(default="actual", description=PLAN_MEANING)
    clock: ClockChoice = Field(default="auto", description=CLOCK_MEANING)

    @property
    def forms(self) -> tuple[str, ...]:
        """The statements' names."""
        return tuple(self.statements)

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """Variables without a value or a use, statements that cannot be timed, expectations about missing
        ones.
        """
        owns = {arm.label: around.settings_of(arm.label) for arm in around.arms}
        scripts = {label: own for label, own in owns.items() if isinstance(own, SqlScript)}
        for label, own in scripts.items():
            yield from undefined(own, label)
        yield from unused(self, scripts, around.arms)
        yield from not_timeable(self)
        yield from unknown_expectations(self)

    def waits_for(self) -> str | None:
        """The user's own database, which must be online before a boot is measured."""
        return self.database or None

    def summary(self) -> str:
        """The text in a plan."""
        return f"the study's own T-SQL ({', '.join(self.forms)})"

    def size_label(self, size: int) -> str:
        """`size 5`: the value of `$(size)`."""
        return f"size {size:,}"
