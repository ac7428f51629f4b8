"""Splitting vCPUs into nodes: evenly, up to a maximum, and as SQL Server's soft-NUMA does."""

from __future__ import annotations

# SQL Server splits hardware nodes with more than 8 cores into soft-NUMA nodes of five to nine, ideally eight
# (https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server).
SOFT_NUMA_CORES = 8
SOFT_NUMA_LEAST = 5


def evenly(vcpus: int, nodes: int) -> tuple[int, ...]:
    """As equal as integers allow, larger first."""
    return tuple(vcpus // nodes + (index < vcpus % nodes) for index in range(nodes))


def filled(vcpus: int, largest: int) -> tuple[int, ...]:
    """Node by node up to a fixed maximum: 12 vCPUs by 8 are 8 and 4."""
    full, rest = divmod(vcpus, largest)
    return (largest,) * full + ((rest,) if rest else ())


def soft_numa_nodes(cores: int) -> int:
    """Number of soft-NUMA nodes that automatic soft-NUMA makes of a hardware node: 2 for 16 cores,
    1 for 9.
    """
    parts = -(-cores // SOFT_NUMA_CORES)
    return parts - 1 if parts > 1 and cores // parts < SOFT_NUMA_LEAST else max(parts, 1)
