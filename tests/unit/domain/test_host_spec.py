"""Hosts described in a few characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.vm_location import parse_host


@given(st.integers(1, 16), st.integers(1, 128), st.integers(1, 4096), st.integers(1, 4))
def test_what_is_written_is_what_is_read(nodes: int, cores: int, memory: int, threads: int) -> None:
    """Nodes, cores and memory of a node, release; every CPU once."""
    host = parse_host(f"{nodes}x{cores}/{memory}@7.0", "8.0", threads)

    assert (len(host.numa_nodes), host.cores_per_node, host.threads_per_core) == (nodes, cores, threads)
    assert (host.node_memory_mb, host.release.key) == (memory * 1024, (7, 0))
    assert sorted(cpu for node in host.numa_nodes for cpu in node.cpus) == list(
        range(nodes * cores * threads)
    )


def test_the_release_may_be_common_and_memory_unknown() -> None:
    """2x16 alone."""
    host = parse_host("2x16", "6.5")

    assert (host.release.key, host.node_memory_mb) == ((6, 5), 0)


@pytest.mark.parametrize("text", ["", "16", "2x", "0x16", "2x16/", "2x16@", "2x16@8", "2*16", "2x16/96GB"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    """The sentence shows how."""
    with pytest.raises(ValueError, match=r"2x16/96@7\.0"):
        parse_host(text, "8.0")
