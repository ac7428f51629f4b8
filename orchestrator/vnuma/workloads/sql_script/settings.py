"""What a study says of its own T-SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from vnuma.domain.arm.arm import Arm
from vnuma.domain.workloads.settings import (
    Path,
    Problem,
    Size,
    StatementSettings,
    WorkloadContext,
)

SIZE = "size"
"""The variable that every script has: `$(size)`."""

VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
"""A variable in a script.

https://learn.microsoft.com/sql/tools/sqlcmd/sqlcmd-use-scripting-variables
"""

SEPARATOR = re.compile(
    r"^[ \t]*GO[ \t]*(?:(?P<times>\d{1,6})[ \t]*)?(?:--[^\r\n]*)?\r?$", re.IGNORECASE | re.MULTILINE
)
"""The line between two batches, with the repetitions of the one before it.

https://learn.microsoft.com/sql/t-sql/language-elements/sql-server-utilities-statements-go
"""

CALL = re.compile(r"\bEXEC(?:UTE)?\b", re.IGNORECASE)
"""A procedure's call."""

_NOT_CODE = re.compile(r"--[^\r\n]*|/\*.*?\*/|N?'(?:[^']|'')*'|\[[^\]]*\]", re.DOTALL)
_TOP = re.compile(r"\bTOP\s*(?:\(|\d|\$)", re.IGNORECASE)
_ORDER = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)


BYTE_ORDER_MARK = "\ufeff"
"""Some editors put it at the start of a file; inside a batch SQL Server reads it as a word."""


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


class SqlScript(StatementSettings):
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

    @property
    def forms(self) -> tuple[str, ...]:
        """The statements' names."""
        return tuple(self.statements)

    @property
    def unordered_tops(self) -> tuple[str, ...]:
        """The statements with TOP and no ORDER BY in their code."""
        codes = {name: _NOT_CODE.sub(" ", text) for name, text in self.statements.items()}
        return tuple(name for name, code in codes.items() if _TOP.search(code) and not _ORDER.search(code))

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


def undefined(script: SqlScript, label: str) -> Iterator[Problem]:
    """Variables without a value in an arm, and `$(size)` where it has none."""
    known = {SIZE, *script.parameters}
    for path, text in _texts(script).items():
        for variable in dict.fromkeys(VARIABLE.findall(text)):
            size_varies = variable == SIZE and path[1] != "statements"
            if variable not in known or size_varies:
                why = "differs within a boot" if size_varies else f"has no value in arm {label}"
                yield Problem(path, f"$({variable}) {why}.", "Give it one in workload.parameters.")


def unused(base: SqlScript, scripts: Mapping[str, SqlScript], arms: Iterable[Arm]) -> Iterator[Problem]:
    """Parameters that no script uses: arms that differ only in one would be the same."""
    everywhere = set().union(*(_used(script) for script in (base, *scripts.values())))
    for name in base.parameters:
        if name not in everywhere:
            yield _unused(("workload", "parameters", name), name)
    for index, arm in enumerate(arms):
        own = arm.workload.get("parameters", {})
        for name in own if isinstance(own, Mapping) else ():
            if name not in _used(scripts[arm.label]):
                yield _unused(("arms", index, "workload", "parameters", name), name)


def not_timeable(script: SqlScript) -> Iterator[Problem]:
    """GO lines in a timed statement, and a call's time for a statement that calls nothing."""
    for name, text in script.statements.items():
        path = ("workload", "statements", name)
        if SEPARATOR.search(text):
            yield Problem(
                path,
                f"statement '{name}' has a line that says GO, but one batch is timed.",
                "Remove that line; what comes before the timed statement belongs in setup.",
            )
        if script.times == "procedure" and not CALL.search(text):
            yield Problem(
                path,
                f"statement '{name}' has no EXEC, so the last time that comes is not the whole call's.",
                "Write EXEC before the procedure's name, or put the statements into a procedure.",
            )


def unknown_expectations(script: SqlScript) -> Iterator[Problem]:
    """Expectations about missing statements."""
    for name in script.expected_rows:
        if name not in script.statements:
            yield Problem(
                ("workload", "expected_rows", name),
                f"expected_rows names '{name}', which is not a statement of this workload.",
                f"There are {', '.join(script.statements)}.",
            )


def _unused(path: Path, name: str) -> Problem:
    return Problem(
        path,
        f"parameter '{name}' is never used: no script contains $({name}).",
        "Remove it, or look for a typing error.",
    )


def _texts(script: SqlScript) -> dict[Path, str]:
    """Everything that is sent, by its place in the study file."""
    named: dict[Path, str] = {("workload", "setup"): script.setup, ("workload", "teardown"): script.teardown}
    return named | {("workload", "statements", name): text for name, text in script.statements.items()}


def _used(script: SqlScript) -> set[str]:
    return {name for text in _texts(script).values() for name in VARIABLE.findall(text)}
