"""Throughput by load: its peak, where more gives less, and which loss boots show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vnuma.analysis.growth import losses, scaling

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


SIZES = (1, 4, 8)


def rates_of(y: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> dict[int, dict[int, float]]:
    """Rates by load and boot, from their logarithms y[boot, load]."""
    return {load: {b: float(math.exp(v)) for b, v in enumerate(y[:, i])} for i, load in enumerate(SIZES)}


def test_each_pair_is_scipys_paired_test_with_bonferroni() -> None:
    """One-sided: the 98.33% upper limit of each of three pairs, as scipy gives it."""
    y = np.random.default_rng(3).normal([0.0, 0.02, -0.05], 0.02, (7, 3))

    found = {(loss.smaller, loss.load): loss for loss in losses(rates_of(y))}

    assert set(found) == {(1, 4), (1, 8), (4, 8)}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        test = stats.ttest_rel(y[:, j], y[:, i], alternative="less")
        limit = test.confidence_interval(1 - 0.05 / 3).high
        loss = found[SIZES[i], SIZES[j]]
        assert loss.high == pytest.approx(math.exp(limit))
        assert loss.ratio == pytest.approx(math.exp((y[:, j] - y[:, i]).mean()))
        assert loss.shown == (test.pvalue < 0.05 / 3)


@pytest.mark.parametrize(("boots", "shown"), [(1, False), (5, False), (6, True)])
def test_a_loss_needs_as_many_boots_as_a_word(boots: int, shown: bool) -> None:
    """Half as much, with next to no scatter: five boots give no mark all the same."""
    y = np.random.default_rng(1).normal([0.0, 0.0, math.log(0.5)], 1e-4, (boots, 3))

    assert any(loss.shown for loss in losses(rates_of(y))) is shown


def test_two_loads_are_compared_over_the_boots_that_have_both() -> None:
    """Two loads are compared only over the boots that measured both."""
    rates = rates_of(np.zeros((8, 3)))
    for boot in range(3):
        del rates[8][boot]

    assert {(loss.smaller, loss.load): loss.pairs for loss in losses(rates)} == {
        (1, 4): 8,
        (1, 8): 5,
        (4, 8): 5,
    }


@pytest.mark.parametrize("boot_sd", [0.0, 0.05])
def test_a_flat_curve_shows_a_loss_in_at_most_5_percent(boot_sd: float) -> None:
    """2,000 flat curves of three loads and six boots, scatter of 3%: two Monte Carlo errors allowed."""
    generator = np.random.default_rng(20190601)
    studies = 2_000
    hits = 0
    for _ in range(studies):
        y = generator.normal(0, 0.03, (6, 3)) + generator.normal(0, boot_sd, (6, 1))
        hits += any(loss.shown for loss in losses(rates_of(y)))
    assert hits / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)
    assert hits > 0
