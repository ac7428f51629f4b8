"""What of a user's script cannot be measured as written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from vnuma.domain.arm.arm import Arm
from vnuma.domain.workloads.problem import Path, Problem
from vnuma.workloads.sql_script.text import CALL, SEPARATOR, SIZE, VARIABLE

if TYPE_CHECKING:
    from vnuma.workloads.sql_script.settings import SqlScript


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
