"""Levels of repeated looks, against the textbook and an independent table."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from vnuma.analysis.stopping import boundaries, levels

TIMES = [0.2, 0.4, 0.6, 0.8, 1.0]


def test_obrien_fleming_spending_gives_the_textbooks_constants() -> None:
    """4 - 4Φ(z/√t) with z for a quarter of the error."""
    z = stats.norm.isf(0.05 / 4)
    spent = [4 - 4 * float(stats.norm.cdf(z / math.sqrt(t))) for t in TIMES]

    assert boundaries(spent, TIMES) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=1e-3)


@pytest.mark.parametrize(
    ("total", "most", "table"),
    [
        (
            0.05 / 4,
            12,
            {4: 0.00240563, 5: 0.00185996, 6: 0.00214408, 8: 0.00297608, 12: 0.00510482},
        ),
        (0.1 / 4, 24, {4: 0.00170103, 5: 0.00128852, 6: 0.00147922, 14: 0.00431962, 24: 0.00961822}),
        (0.05, 12, {4: 0.0096225, 5: 0.00815485, 6: 0.00959673, 12: 0.0242456}),
        (0.1 / 4, 8, {4: 0.00883883, 5: 0.00744495, 8: 0.012424}),
    ],
)
def test_levels_are_those_of_another_implementation(total: float, most: int, table: dict[int, float]) -> None:
    """Power family, exponent 1.5, looks from block 4."""
    found = levels(total, most)

    assert {block: found[block] for block in table} == pytest.approx(table, abs=1e-5, rel=1e-4)


@pytest.mark.parametrize("most", [1, 3])
def test_too_few_blocks_have_no_look(most: int) -> None:
    """A study that ends before the first look has no level."""
    assert dict(levels(0.05, most)) == {}
