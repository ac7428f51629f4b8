"""One statement to time, and how to tell that it did all of its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RowsFrom = Literal["rowcount", "result"]


@dataclass(frozen=True)
class Query:
    """One statement to time, and how to tell that it did all of its work.

    `rows_from`: `rowcount` means that the statement itself processes `expected_rows`; `result` means
    that it returns one row whose first column is that number. `setup` and `cleanup` run untimed.
    """

    workload: str
    size: int
    form: str
    sql: str
    expected_rows: int
    rows_from: RowsFrom
    setup: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
