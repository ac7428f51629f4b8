"""The TcpPort setting: read, and written with a mask for each end of the memory nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.vm.endpoint import mapped, node_mask, ports_of

PORTS = st.integers(1, 65535)
NODES = st.sets(st.integers(0, 63), min_size=1)


@given(st.lists(st.tuples(PORTS, st.none() | NODES), min_size=1))
def test_the_ports_of_a_setting_are_read_whatever_their_masks(
    entries: list[tuple[int, set[int] | None]],
) -> None:
    """Masks and blanks do not hide a port."""
    text = ", ".join(f"{port}[{node_mask(nodes)}]" if nodes else str(port) for port, nodes in entries)
    assert ports_of(text) == tuple(port for port, _ in entries)


@given(NODES)
def test_a_mask_has_the_bit_of_each_node(nodes: set[int]) -> None:
    """And no other."""
    mask = int(node_mask(nodes), 16)
    assert {bit for bit in range(64) if mask >> bit & 1} == nodes


@pytest.mark.parametrize("text", ["", "1433,", "0", "65536", "1433[", "1433[x]", "1433;DROP", "14 33", "'"])
def test_other_text_is_refused(text: str) -> None:
    """It goes into a statement."""
    with pytest.raises(ValueError, match="is not a port"):
        ports_of(text)


def test_soft_nodes_of_one_memory_node_share_its_mask() -> None:
    """The first and the last memory node get a port; the server's own stays in front."""
    nodes = {0: (0, 1), 1: (2, 3), 2: (4, 5)}
    assert mapped("1433", (50001, 50002), nodes) == "1433,50001[0x3],50002[0x30]"
