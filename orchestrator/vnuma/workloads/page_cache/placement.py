"""On which nodes a file's pages are, from the growth of each NUMA node's FilePages. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnuma.workloads.page_cache.settings import MemoryPlace

PROVEN_SHARE = 0.9
"""At least this share of the new pages must be where they were placed."""

MOST_ON_DEPLETED = 0.5
"""Largest share of the file on a depleted node, from its last free memory."""

EVEN_WITHIN = 0.1
"""Interleaved pages may differ from an even distribution by this share of the file."""


@dataclass(frozen=True)
class Placed:
    """What loading a file changed: growth of FilePages in kilobytes by node, and the file's size."""

    file_kb: int
    grown_kb: Mapping[int, int]

    @property
    def total_kb(self) -> int:
        """The total growth."""
        return sum(kb for kb in self.grown_kb.values() if kb > 0)

    def share(self, node: int) -> float:
        """A node's share of the new pages; 0 without any."""
        return max(0, self.grown_kb.get(node, 0)) / self.total_kb if self.total_kb else 0.0


def growth(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """Growth in kilobytes by node, negative where pages left."""
    return {node: kb - before.get(node, 0) for node, kb in sorted(after.items())}


def not_proven(placed: Placed, wanted: MemoryPlace, reader: int) -> str | None:
    """Why the pages do not prove the placement by a reader on node `reader`; None when they do.

    A node counts as depleted when most of the pages that it reads are on others.
    """
    if placed.total_kb < PROVEN_SHARE * placed.file_kb:
        came, size = placed.total_kb // 1024, placed.file_kb // 1024
        return f"only {came} of the file's {size} MiB were in the page cache after reading it"
    shares = {node: placed.share(node) for node in placed.grown_kb}
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
