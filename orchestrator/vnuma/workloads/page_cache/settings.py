"""What a study says of the page cache workload: a cached file read from local and from remote memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.replicate import Replicate
from vnuma.domain.workloads.settings import Guest, Size, WorkloadSettings

Form = Literal["single", "saturated", "unsaturated"]
NodeNumber = Annotated[int, Field(ge=0, le=1023)]
MemoryPlace = NodeNumber | Literal["interleave", "depleted"]

ASSUMED_GB_PER_S = 5.0
"""One reader's throughput on a 2009 Xeon (Closson 2009), so that plans err on the long side."""

THROUGHPUT = Metric("read throughput", "GB/s", "higher")
"""Decimal GB (10^9 bytes) as in dd's output, over the slowest reader's own time."""


class PageCache(WorkloadSettings):
    """`dd` of a file in the page cache whose pages are on a chosen NUMA node. It has no sentinel."""

    size_word: ClassVar[str] = "MB"
    sizes_are_loads: ClassVar[bool] = False
    guest: ClassVar[Guest] = "linux"
    replicate: ClassVar[Replicate] = "pass"
    factors: ClassVar[frozenset[str]] = frozenset({"cpu_node", "memory_node"})
    node_factors: ClassVar[frozenset[str]] = frozenset({"cpu_node", "memory_node"})
    figures: ClassVar[tuple[Metric, ...]] = (
        Metric("seconds per read", "s", "lower", "figures"),
        Metric("pages moved", "MB", "lower", "figures"),
    )

    name: Literal["page_cache"] = Field(default="page_cache", description="The workload.")
    sizes: tuple[Size, ...] = Field(
        default=(1472,), min_length=1, description="Size of the file in MB (10^6 bytes)."
    )
    forms: tuple[Form, ...] = Field(
        default=("single", "saturated", "unsaturated"),
        min_length=1,
        description=(
            "`single`: one dd as fast as it can, which keeps its CPU busy (the published one). "
            "`saturated`: one such reader for each CPU of the node, all at once. `unsaturated`: one "
            "reader that rests after each sixteenth of the file, so that its CPU is idle part of the "
            "time. The first form decides the verdict."
        ),
    )
    cpu_node: NodeNumber = Field(default=0, description="NUMA node whose CPUs read.")
    memory_node: MemoryPlace = Field(
        default=0,
        description=(
            "Where the file's pages are: a NUMA node; `interleave`, spread over all; `depleted`, "
            "wherever the kernel puts them when they are read in from `cpu_node` while its own memory "
            "is full."
        ),
    )
    folder: str = Field(
        default="/var/tmp",
        pattern=r"^/[A-Za-z0-9._/-]{1,199}$",
        description=(
            "Folder on the machine, on a disk, never a tmpfs. The file is in its own folder there, "
            "`vnuma-page-cache`, which is removed after the run."
        ),
    )
    numa_balancing: Literal["keep", "on", "off"] = Field(
        default="keep",
        description="kernel.numa_balancing during a pass; restored at its end. Always recorded.",
    )
    transparent_hugepages: Literal["keep", "always", "madvise", "never"] = Field(
        default="keep",
        description="Transparent huge pages during a pass; restored at its end. Always recorded.",
    )

    def kernel_settings(self) -> Mapping[str, str]:
        """The settings that the study changes."""
        balancing = {"on": "1", "off": "0"}.get(self.numa_balancing, "keep")
        wanted = {"numa_balancing": balancing, "transparent_hugepages": self.transparent_hugepages}
        return {name: value for name, value in wanted.items() if value != "keep"}

    def readers(self, cpus: int) -> dict[str, int]:
        """How many `dd` read at once in each form, on a node with that many CPUs."""
        return {form: max(cpus, 1) if form == "saturated" else 1 for form in self.forms}

    def metric(self, form: str) -> Metric:
        """Throughput of all readers together."""
        del form
        return THROUGHPUT

    def assumed_seconds(self, size: int, form: str) -> float:
        """One read; the unsaturated one pauses for as long again."""
        return size / 1000 / ASSUMED_GB_PER_S * (2.0 if form == "unsaturated" else 1.0) + 1.0

    def size_label(self, size: int) -> str:
        """`1,472 MB`."""
        return f"{size:,} MB"
