"""Topologies: how they are written and what they multiply to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.topology.topology import Topology, topologies


@given(st.integers(1, 9999), st.integers(1, 9999))
def test_a_topology_reads_back_as_it_is_written(sockets: int, cores: int) -> None:
    """Writing and reading are inverse."""
    assert Topology.parse(str(Topology(sockets, cores))) == Topology(sockets, cores)


@pytest.mark.parametrize("text", ["", "2", "x8", "2x", "0x8", "2x0", "2X8x1", "-1x4", "2 x 8", "2x08x"])
def test_what_is_no_topology_is_refused_with_an_example(text: str) -> None:
    """The sentence shows how it is written."""
    with pytest.raises(ValueError, match="as in 2x8"):
        Topology.parse(text)


@given(st.integers(1, 512))
def test_every_topology_of_a_vcpu_count_multiplies_to_it(vcpus: int) -> None:
    """All divisor pairs, each once, fewest sockets first."""
    found = topologies(vcpus)

    assert all(topology.vcpus == vcpus for topology in found)
    assert len(set(found)) == len(found) == sum(vcpus % n == 0 for n in range(1, vcpus + 1))
    assert list(found) == sorted(found)
