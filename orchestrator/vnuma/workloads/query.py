"""One statement to time, and how to tell that it did all of its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RowsFrom = Literal["rowcount", "result", "none"]
TimesFrom = Literal["statement", "procedure"]
Statements = Literal["one", "any"]


@dataclass(frozen=True)
class Query:
    """One statement to time, and how to tell that it did all of its work.

    `rows_from`: `rowcount` means that the statement itself processes `expected_rows`; `result` means
    that it returns one row whose first column is that number; `none`, that nothing proves it. Without
    `expected_rows` the run's first execution tells. `setup` and `cleanup` run untimed. `times`: which of
    the execution times that come is the statement's: the only one, or a procedure call's last.
    `statements`: `one` only where vnuma itself wrote a single statement; its result is then discarded whole.
    """

    workload: str
    size: int
    form: str
    sql: str
    expected_rows: int | None
    rows_from: RowsFrom
    setup: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    times: TimesFrom = "statement"
    statements: Statements = "any"
