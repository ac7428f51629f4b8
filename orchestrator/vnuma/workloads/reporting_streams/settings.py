"""What a study says of the reporting streams: queries over pages that lie on one memory node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import InstanceChange, Problem, Size, WorkloadContext, WorkloadSettings

Placement = Literal["local", "remote"]
Port = Annotated[int, Field(ge=1024, le=65535)]

SEARCH = (1, 2, 4, 8, 16, 32, 64)
"""The numbers of streams in a search."""

ROWS_AT_SCALE_1 = 50_000_000
BYTES_PER_ROW = 180
"""About 9 GB for 50 million rows (Shea 2012)."""

LEAST_ROWS = 600
"""Enough rows for every occurring combination of the dimensions."""

QUERIES_PER_HOUR = Metric("queries per hour", "queries/h", "higher")
MS_PER_QUERY = Metric("time per query", "ms", "lower", "figures")
MISPLACED = Metric("page lookups on the wrong side", "%", "lower", "figures")
SPREAD = Metric("slowest stream over fastest", "ratio", "lower", "figures")
REMOTE_SCAN = Metric("scan from the other node over own", "ratio", "lower", "figures")
"""Time of one scan of the cached pages from another memory node, relative to their own; per boot."""

ASSUMED_US_PER_ROW = 1.4
"""CPU time of a row: 60 microseconds a page of 46 rows, from 200,000 lookups/s on 12 CPUs (Shea 2012)."""


class ReportingStreams(WorkloadSettings):
    """One reporting query in N concurrent streams, all on one node's CPUs, over pages on one memory node."""

    size_word: ClassVar[str] = "streams"
    factors: ClassVar[frozenset[str]] = frozenset({"placement"})
    node_factors: ClassVar[frozenset[str]] = frozenset({"placement"})
    changes: ClassVar[frozenset[InstanceChange]] = frozenset({"tcp_ports"})
    needs_remote_memory: ClassVar[bool] = True
    maxdop: ClassVar[int] = 1
    """The published query's hint; a study cannot change it."""
    measured: ClassVar[Metric] = QUERIES_PER_HOUR
    figures: ClassVar[tuple[Metric, ...]] = (MS_PER_QUERY, MISPLACED, SPREAD, REMOTE_SCAN)

    name: Literal["reporting_streams"] = Field(default="reporting_streams", description="The workload.")
    streams: Literal["fixed", "search"] = Field(
        default="fixed",
        description=(
            "`fixed` runs the numbers of streams in `sizes`; `search` tries 1, 2, 4 ... 64. The "
            "largest difference of a search is a maximum over it, and the report says so."
        ),
    )
    sizes: tuple[Size, ...] = Field(
        default=(32,), min_length=1, description="Concurrent streams: connections that query at once."
    )
    forms: tuple[Literal["report"], ...] = Field(
        default=("report",), min_length=1, description="One form: the reporting query at MAXDOP 1."
    )
    placement: Placement = Field(
        default="local",
        description=(
            "Where the streams run: `local` on the memory node that has the pages, `remote` on the "
            "other one. Arms set it."
        ),
    )
    scale_factor: float = Field(
        default=1.0,
        ge=LEAST_ROWS / ROWS_AT_SCALE_1,
        le=20,
        description="Rows of the large table in units of 50 million (about 9 GB).",
    )
    queries_per_stream: int = Field(
        default=2, ge=1, le=1000, description="Queries that each stream runs, one after the other."
    )
    ports: tuple[Port, Port] = Field(
        default=(50001, 50002),
        description=(
            "Two more TCP ports, mapped to the first and the last memory node. `vnuma_sql.node_ports` "
            "in the inventory has precedence. Open them in the guest's firewall."
        ),
    )
    misplaced_percent: float = Field(
        default=0.1,
        ge=0,
        lt=50,
        description=(
            "Largest share of pages, and of page lookups, on the wrong side for a cell to count, in percent."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _searched(cls, data: Any) -> Any:
        """A search without sizes tries them all."""
        if isinstance(data, dict) and data.get("streams") == "search" and "sizes" not in data:
            return {**data, "sizes": SEARCH}
        return data

    @property
    def rows(self) -> int:
        """Rows of the large table."""
        return round(self.scale_factor * ROWS_AT_SCALE_1)

    @property
    def table_mb(self) -> int:
        """Approximate size."""
        return -(-self.rows * BYTES_PER_ROW // 1_000_000)

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """Two ports for two nodes; and arms that differ in placement, unless that is the question."""
        if len(set(self.ports)) < len(self.ports):
            yield Problem(
                ("workload", "ports"),
                f"port {self.ports[0]} is named twice.",
                "Name two ports, one for each memory node.",
            )
        if max(self.sizes) > 512:
            yield Problem(
                ("workload", "sizes"), f"{max(self.sizes)} streams are too many.", "Use 512 at most."
            )

    def caution(self) -> tuple[str, str] | None:
        """What a search means for its verdict, and what to do about it; None for a fixed number."""
        if self.streams == "fixed":
            return None
        return (
            f"The numbers of streams are a search over {len(self.sizes)}: the largest difference is a "
            "maximum over a search, which exceeds the true difference.",
            "Repeat with that number alone (streams: fixed, sizes: [N]) before quoting it.",
        )

    def assumed_seconds(self, size: int, form: str) -> float:
        """From the published study's page rate, with some 12 CPUs on a node."""
        return self.rows * ASSUMED_US_PER_ROW / 1e6 * self.queries_per_stream * max(1.0, size / 12)

    def summary(self) -> str:
        """The text in a plan."""
        return (
            f"{self.sizes_listed} concurrent streams of a reporting query over {self.rows:,} rows "
            f"(about {self.table_mb:,} MB) on one memory node"
        )
