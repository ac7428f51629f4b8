"""Boots or iterations: the split of the spread, held to the textbook's ANOVA estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vnuma.analysis.cells import Boot, Grid
from vnuma.analysis.fit import fit
from vnuma.analysis.variance import Noise, median_variance, noise
from vnuma.analysis.wording import split_sentence


def test_the_split_finds_what_was_put_in() -> None:
    """4,000 boots with SD 0.4% between and 0.6% within, medians of three: shares within 5%."""
    rng = np.random.default_rng(11)
    middles = rng.normal(0, 0.004, (1000, 4))
    iterations = np.exp(middles[..., None] + rng.normal(0, 0.006, (1000, 4, 3)))
    full = fit(Grid(("a", "b", "c", "d"), tuple(range(1000)), np.log(np.median(iterations, axis=2))))
    boots = [
        Boot(str(k), str(k), b, None, (tuple(map(float, iterations[b, k])),))
        for b in range(1000)
        for k in range(4)
    ]
    found = noise(full.ms, full.df, boots)
    true_share = 0.004**2 / (0.004**2 + median_variance(3) * 0.006**2)

    assert (found.boot_sd, found.within_sd) == pytest.approx((0.004, 0.006), rel=0.05)
    assert found.boot_share == pytest.approx(true_share, rel=0.05)


def test_more_iterations_are_said_to_gain_what_is_theirs() -> None:
    """A quarter of the variance within boots: intervals would narrow by 14% at most."""
    share = Noise(0.01, 0.012, 20, 0.007, math.sqrt(0.75) * 0.01)

    assert "75% of a cell's variance" in split_sentence(share, "boot")
    assert "by 14% at most" in split_sentence(share, "boot")


@pytest.mark.parametrize("found", [Noise(None, None, 0, 0.01, None), Noise(0.01, 0.02, 9, None, None)])
def test_what_cannot_be_split_is_said(found: Noise) -> None:
    """Without an error, or with one iteration a boot, there is no share and no promise."""
    assert found.boot_share is None
    assert "not evaluated" in split_sentence(found, "boot")


def test_no_spread_between_boots_promises_no_figure() -> None:
    """An estimate of zero is a bound of the estimator, and no promise that iterations suffice."""
    assert "none to be seen" in split_sentence(Noise(0.01, 0.02, 9, 0.02, 0.0), "boot")
