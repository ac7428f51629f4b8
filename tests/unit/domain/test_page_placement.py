"""FilePages by node prove where a file lies, or say why they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.workloads.page_cache.settings import MemoryPlace, growth, not_proven

FILE_KB = 100_000


@pytest.mark.parametrize(
    ("wanted", "grown"),
    [
        (0, {0: 100_500, 1: 300}),
        (1, {0: -4_000, 1: 100_000}),
        ("interleave", {0: 50_400, 1: 49_900}),
        ("depleted", {0: 12_000, 1: 88_500}),
    ],
)
def test_pages_where_they_were_put_prove_it(wanted: MemoryPlace, grown: dict[int, int]) -> None:
    """Nine tenths on the node, an even spread, or most of them off a depleted node: that is proof."""
    assert not_proven(FILE_KB, grown, wanted, 0) is None


@pytest.mark.parametrize(
    ("wanted", "grown", "why"),
    [
        (0, {0: 20_000, 1: 80_000}, "not on node 0: node 0 20%, node 1 80%"),
        ("interleave", {0: 90_000, 1: 10_000}, "not spread evenly"),
        (0, {0: 40_000, 1: 0}, "only 39 of the file's 97 MiB"),
        ("depleted", {0: 0, 1: 0}, "only 0 of the file's"),
        ("depleted", {0: 88_000, 1: 12_000}, "node 0 was not depleted"),
    ],
)
def test_pages_elsewhere_say_where(wanted: MemoryPlace, grown: dict[int, int], why: str) -> None:
    """What does not prove the placement is said in figures."""
    assert why in str(not_proven(FILE_KB, grown, wanted, 0))


@given(grown=st.dictionaries(st.integers(0, 7), st.integers(-200_000, 200_000), min_size=1))
def test_one_node_at_most_is_proven(grown: dict[int, int]) -> None:
    """Shares of what came in add up to all of it, whatever left a node meanwhile."""
    whole = sum(kb for kb in grown.values() if kb > 0)
    most = [node for node, kb in grown.items() if whole >= 0.9 * FILE_KB and kb / whole >= 0.9]

    assert [node for node in grown if not_proven(FILE_KB, grown, node, 0) is None] == most
    assert len(most) <= 1


def test_pages_that_left_are_negative_growth() -> None:
    """Growth by node may be positive or negative."""
    assert growth({0: 10, 1: 30}, {0: 15, 1: 20}) == {0: 5, 1: -10}
