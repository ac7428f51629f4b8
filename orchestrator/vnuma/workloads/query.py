"""One statement to time, with its place in a study."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.sqlserver.client.timing import Statement


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """One statement to time, of that workload, size and form. Without `expected_rows` the run's first
    execution sets them.
    """

    workload: str
    size: int
    form: str
