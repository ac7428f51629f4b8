"""What a study says of scans over more data than a cache holds."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.settings import StatementSettings

Megabytes = Annotated[int, Field(ge=1, le=1_048_576)]
ScanForm = Literal["sparse", "dense"]


class ScanAggregate(StatementSettings):
    """A scan and aggregate over a memory-optimised table that is larger than the last-level cache.

    The paper's cross joins read 0.4 MB again and again, which every cache holds: they cannot show the
    distance to memory. This workload reads all of its rows from memory, and sends one row.
    """

    size_word: ClassVar[str] = "MB"
    factors: ClassVar[frozenset[str]] = frozenset({"maxdop"})
    offers_control: ClassVar[bool] = True

    name: Literal["scan_aggregate"] = Field(description="The workload.")
    sizes: tuple[Megabytes, ...] = Field(
        default=(1024,),
        min_length=1,
        description="MB of rows (2,048 bytes each), one table per size; use several times the cache size.",
    )
    forms: tuple[ScanForm, ...] = Field(
        default=("sparse", "dense"),
        min_length=1,
        description=(
            "`sparse` reads a few cache lines of each row (distance to memory), `dense` every byte "
            "(bandwidth). The first form decides the verdict."
        ),
    )
    maxdop: int = Field(
        default=1, ge=0, le=64, description="MAXDOP hint on every form; 0 keeps the server's own."
    )

    def assumed_seconds(self, size: int, form: str) -> float:
        """A worker reads about 2 million rows a second sparsely, 1.6 GB a second densely."""
        return size * 512 / 2e6 if form == "sparse" else size / 1600

    def summary(self) -> str:
        """The text in a plan."""
        return f"scans of {self.sizes_listed} MB ({', '.join(self.forms)})"
