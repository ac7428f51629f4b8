"""What a study says of the paper's workload."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.settings import Problem, Size, StatementSettings, WorkloadContext

Form = Literal["client", "server", "into"]

ASSUMED_US_PER_ROW = 19.2


class CrossJoin(StatementSettings):
    """The paper's workload: TOP (n) of two memory-optimised tables, crossed."""

    size_word: ClassVar[str] = "rows a side"
    factors: ClassVar[frozenset[str]] = frozenset({"maxdop", "spool"})
    offers_control: ClassVar[bool] = True

    name: Literal["cross_join"] = Field(default="cross_join", description="The workload.")
    sizes: tuple[Size, ...] = Field(
        default=(500, 1000, 2000, 3000),
        min_length=1,
        description="Rows on each side; the result has the square of that.",
    )
    forms: tuple[Form, ...] = Field(
        default=("client", "server"),
        min_length=1,
        description=(
            "`client` streams every row and discards it in the driver (as in the paper), `server` "
            "sends one aggregate over all pairs, `into` writes to a temporary table. The first form "
            "decides the verdict."
        ),
    )
    maxdop: int = Field(
        default=1, ge=0, le=64, description="MAXDOP hint on every form; 0 keeps the server's own."
    )
    spool: Literal["allowed", "avoided"] = Field(
        default="allowed",
        description="`avoided` adds the hint NO_PERFORMANCE_SPOOL: the inner side is not read from tempdb.",
    )

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """A size beyond the smaller table would silently give fewer rows than n x n."""
        rows = around.smaller_table_rows
        for index, size in enumerate(self.sizes):
            if rows is not None and size > rows:
                yield Problem(
                    ("workload", "sizes", index),
                    f"size {size} is more rows than the smaller table has ({rows}).",
                    f"Use at most {rows}, or generate more rows in dataset.",
                )

    def assumed_seconds(self, size: int, form: str) -> float:
        """Based on the paper's client, which took 19.2 microseconds a row (Dakic 2019, Table 1)."""
        return size * size * ASSUMED_US_PER_ROW / 1e6 * {"client": 1.0, "into": 0.3, "server": 0.12}[form]

    def summary(self) -> str:
        """The text in a plan."""
        return f"cross joins of {self.sizes_listed} rows a side ({', '.join(self.forms)})"

    def size_label(self, size: int) -> str:
        """`500 x 500`: both sides have as many rows."""
        return f"{size:,} x {size:,}"
