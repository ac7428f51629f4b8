"""Throughput by load: its peak, and where more gives less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.analysis.growth import scaling

RATES = st.dictionaries(st.integers(1, 64), st.floats(1, 1e6), min_size=2, max_size=12)


def test_a_curve_that_falls_is_lower_than_before() -> None:
    """Chang's Itanium by processors: a fifth more with two, nothing with four, less with eight."""
    found = scaling({1: 13_500, 2: 16_500, 4: 16_500, 8: 14_000})

    assert found is not None
    assert (found.peak, found.peak_rate, found.lower) == (2, 16_500, (8,))
    assert found.worst_loss(found.lower) == pytest.approx(2_500 / 16_500)


def test_one_point_is_no_curve() -> None:
    """Nothing can be said."""
    assert scaling({4: 10.0}) is None


@given(rates=RATES)
def test_the_unit_does_not_matter(rates: dict[int, float]) -> None:
    """Peak and losses are the same in another unit; the peak's rate is the highest."""
    found, other = scaling(rates), scaling({load: rate * 2 for load, rate in rates.items()})

    assert found is not None
    assert other is not None
    assert (found.peak, found.lower) == (other.peak, other.lower)
    assert rates[found.peak] == max(rates.values())
    assert found.peak not in found.lower
    assert 0 <= found.worst_loss(found.lower) < 1
