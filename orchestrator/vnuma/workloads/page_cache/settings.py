"""What a study says of the page cache workload: a cached file read from local and from remote memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import GuestPart, Size, WorkloadSettings

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
    factors: ClassVar[frozenset[str]] = frozenset({"cpu_node", "memory_node"})
    node_factors: ClassVar[frozenset[str]] = frozenset({"cpu_node", "memory_node"})
    measured: ClassVar[Metric] = THROUGHPUT
    proven: ClassVar[str] = "with the file's pages proven in place, by each node's FilePages"
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

    @property
    def needs(self) -> frozenset[GuestPart]:
        """No SQL Server."""
        return frozenset({"shell"})

    def kernel_settings(self) -> Mapping[str, str]:
        """The settings that the study changes."""
        balancing = {"on": "1", "off": "0"}.get(self.numa_balancing, "keep")
        wanted = {"numa_balancing": balancing, "transparent_hugepages": self.transparent_hugepages}
        return {name: value for name, value in wanted.items() if value != "keep"}

    def steps(self) -> Iterator[str]:
        """See `WorkloadSettings`."""
        yield f"Files are made once in {self.folder}/vnuma-page-cache, and removed after the run."
        yield "The page cache is dropped before each pass: other programs read from disk for a while."
        yield "The file is read into memory from one node; each node's FilePages prove where it is."

    def readers(self, cpus: int) -> dict[str, int]:
        """How many `dd` read at once in each form, on a node with that many CPUs."""
        return {form: max(cpus, 1) if form == "saturated" else 1 for form in self.forms}

    def assumed_seconds(self, size: int, form: str) -> float:
        """One read; the unsaturated one pauses for as long again."""
        return size / 1000 / ASSUMED_GB_PER_S * (2.0 if form == "unsaturated" else 1.0) + 1.0


PROVEN_SHARE = 0.9
"""At least this share of the new pages must be where they were placed."""

MOST_ON_DEPLETED = 0.5
"""Largest share of the file on a depleted node, from its last free memory."""

EVEN_WITHIN = 0.1
"""Interleaved pages may differ from an even distribution by this share of the file."""


def growth(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Growth in kilobytes by node, negative where pages left."""
    return {node: kb - before.get(node, 0) for node, kb in sorted(after.items())}


def not_proven(file_kb: int, grown_kb: Mapping[int, int], wanted: MemoryPlace, reader: int) -> str | None:
    """Why FilePages that grew by so much on each node do not prove where a reader on node `reader` placed the
    file; None when they do.

    A node counts as depleted when most of the pages that it reads are on others.
    """
    total_kb = sum(kb for kb in grown_kb.values() if kb > 0)
    if total_kb < PROVEN_SHARE * file_kb:
        came, size = total_kb // 1024, file_kb // 1024
        return f"only {came} of the file's {size} MiB were in the page cache after reading it"
    shares = {node: max(0, kb) / total_kb for node, kb in grown_kb.items()}
    told = ", ".join(f"node {node} {share * 100:.0f}%" for node, share in shares.items())
    if wanted == "depleted":
        kept = shares.get(reader, 0.0) > MOST_ON_DEPLETED
        return f"node {reader} was not depleted; it took most of the file's pages: {told}" if kept else None
    if wanted == "interleave":
        even = 1 / len(shares)
        if any(abs(share - even) > EVEN_WITHIN for share in shares.values()):
            return f"the file's pages are not spread evenly: {told}"
        return None
    if shares.get(wanted, 0.0) < PROVEN_SHARE:
        return f"the file's pages are not on node {wanted}: {told}"
    return None
