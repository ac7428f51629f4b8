"""What a study says of inserts against the log cache: where the workers run, and how durable commits are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import InstanceChange, Problem, WorkloadContext, WorkloadSettings

Form = Literal["disk", "native"]
Workers = Literal["same_node", "other_node"]
Durability = Literal["full", "delayed"]

ROWS_PER_INSERT = {"disk": 2, "native": 1}
"""As published: natively compiled procedures do not support an INSERT of several rows."""

LARGEST_INSERTS = 500_000_000
"""Over all sessions: each session's counter is an int, and its keys a range of 10,000,000,000."""

SPINS = Metric("spins per insert", "spins", "lower", "figures")
CYCLES = Metric("CPU cycles per spin", "cycles", "higher", "figures")
BACKOFFS = Metric("backoffs per 1,000 inserts", "backoffs", "lower", "figures")
FLUSH = Metric("log flush wait", "ms", "lower", "figures")

_US_PER_INSERT = {("disk", "delayed"): 2.0, ("disk", "full"): 30.0}


class LogSpinlock(WorkloadSettings):
    """Concurrent inserting sessions that all need the spinlock on the log cache (LOGCACHE_ACCESS).

    An arm sets where they run: on the log writer's vNUMA node or on another. See
    docs/workloads/log_spinlock.md.
    """

    size_word: ClassVar[str] = "inserts"
    factors: ClassVar[frozenset[str]] = frozenset({"workers", "durability"})
    node_factors: ClassVar[frozenset[str]] = frozenset({"workers"})
    changes: ClassVar[frozenset[InstanceChange]] = frozenset({"process_affinity", "resource_pool"})
    needs_remote_memory: ClassVar[bool] = True
    figures: ClassVar[tuple[Metric, ...]] = (SPINS, CYCLES, BACKOFFS, FLUSH)

    name: Literal["log_spinlock"] = Field(description="The workload.")
    sizes: tuple[Annotated[int, Field(ge=1, le=LARGEST_INSERTS)], ...] = Field(
        default=(2_000_000,), min_length=1, description="INSERT statements of all sessions together."
    )
    forms: tuple[Form, ...] = Field(
        default=("disk", "native"),
        min_length=1,
        description=(
            "`disk` inserts two rows a transaction into a table on disk; `native` inserts one row a "
            "statement into a memory-optimised table, each session's in one atomic block of a natively "
            "compiled procedure. The two are never compared with each other. The first form decides "
            "the verdict."
        ),
    )
    sessions: int = Field(default=10, ge=1, le=512, description="Sessions that insert at the same time.")
    workers: Workers = Field(
        default="same_node",
        description=(
            "Where the sessions run, by SQL Server's process affinity: on the log writer's vNUMA node, "
            "or on the next one. The log writer's CPUs are excluded, and as many on the other node."
        ),
    )
    durability: Durability = Field(
        default="delayed",
        description="`delayed` forces delayed durability; `full` lets every commit wait for the log.",
    )
    pool_percent: int = Field(
        default=50,
        ge=5,
        le=95,
        description="Share of the memory that SQL Server may use for the data of form `native`.",
    )

    @property
    def pool_share(self) -> int | None:
        """Only form `native` has memory-optimised data."""
        return self.pool_percent if "native" in self.forms else None

    def metric(self, form: str) -> Metric:
        """The load's time divided by its inserts; on disk, each insert is a transaction."""
        return Metric({"disk": "time per transaction"}.get(form, "time per insert"), "us", "lower")

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """Sizes that do not divide evenly among the sessions."""
        for index, size in enumerate(self.sizes):
            if size % self.sessions:
                yield Problem(
                    ("workload", "sizes", index),
                    f"{size} inserts cannot be spread evenly over {self.sessions} sessions.",
                    f"Use a multiple of {self.sessions}.",
                )

    def assumed_seconds(self, size: int, form: str) -> float:
        """From the published times (1 to 2 microseconds an insert), and a guess for waiting at
        every commit.
        """
        return 5 + size * _US_PER_INSERT.get((form, self.durability), 1.0) / 1e6

    @property
    def log_mb(self) -> int:
        """The log file's size for the largest load, so that it does not grow while timed."""
        return 512 + max(self.sizes) * _LOG_BYTES // 2**20

    @property
    def data_mb(self) -> int:
        """The same for the data file."""
        return 64 + max(self.sizes) * ROWS_PER_INSERT["disk"] * _ROW_BYTES // 2**20

    @property
    def native_mb(self) -> int:
        """Memory for the largest load of form `native`: twice its rows, and the hash index's buckets."""
        return 64 + max(self.sizes) * (2 * _ROW_BYTES + 16) // 2**20


_ROW_BYTES = 180
_LOG_BYTES = 1_000
