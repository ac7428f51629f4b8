"""Boots or iterations: the split of the spread, held to the textbook's ANOVA estimator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.analysis.data import columns_of
from vnuma.analysis.cells import Boot, Grid
from vnuma.analysis.fit import fit
from vnuma.analysis.planning import Allocation, Costs, Plans, allocate, iteration_seconds, upper_spread
from vnuma.analysis.records import AnalysisDesign, Sample
from vnuma.analysis.simulate import Simulated
from vnuma.analysis.variance import Noise, cell_sd, median_variance, noise
from vnuma.analysis.wording import plans_sentence, split_sentence

DESIGN = AnalysisDesign("1x16", columns_of(), (2000,), ("client",), ("sql16",), 8)


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


def test_no_spread_between_boots_promises_no_figure() -> None:
    """An estimate of zero is a bound of the estimator, and no promise that iterations suffice."""
    assert "not detectable" in split_sentence(Noise(0.01, 0.02, 9, 0.02, 0.0), "boot")


@pytest.mark.parametrize(
    ("cost_boot", "cost_iteration", "within", "between", "iterations"),
    [(300, 275, 0.005, 0.005, 3), (300, 5, 0.01, 0.002, 7)],
)
def test_the_cheapest_iterations_are_those_of_the_closed_form(
    cost_boot: float, cost_iteration: float, within: float, between: float, iterations: int
) -> None:
    """Kalibera and Jones 2013: sqrt(cost ratio x variance ratio), where it is clear."""
    closed = math.sqrt(cost_boot / cost_iteration * within**2 / between**2)
    found = allocate(DESIGN, 0.006, (between, within), Costs(cost_boot, cost_iteration, 0))

    assert min((3, 5, 7), key=lambda m: abs(m - closed)) == iterations
    assert found.choices[0].iterations == iterations


def test_the_width_is_kept_in_new_studies() -> None:
    """In 80% of 4,000 studies drawn boot by boot; the comparison is that of the textbook's pooled error."""
    best = allocate(DESIGN, 0.008, (0.005, 0.008), Costs(300, 100, 1)).choices[0]
    rng = np.random.default_rng(17)
    boots = rng.normal(0, 0.005, (4000, best.blocks, 6))
    times = boots[..., None] + rng.normal(0, 0.008, (*boots.shape, best.iterations))
    kept = Simulated(np.median(times, axis=3), 2).half_width_95.max(axis=1) <= math.log(1.008)

    assert kept.mean() > 0.78
    fewer = Simulated(np.median(times, axis=3)[:, :-1], 2).half_width_95.max(axis=1) <= math.log(1.008)
    assert fewer.mean() < 0.80


def test_a_width_out_of_reach_has_no_choice() -> None:
    """More than 200 blocks are not offered."""
    found = allocate(DESIGN, 0.0001, (0.01, 0.01), Costs(300, 100, 1))

    assert found.choices == ()
    assert "more than 200 blocks" in plans_sentence(found, "boot")


def test_the_plan_rests_on_the_upper_bound() -> None:
    """What the bound adds is between boots; the cell's SD is then the bound itself."""
    spread = upper_spread(Noise(0.01, 0.013, 10, 0.006, 0.009), 3, 2)

    assert spread is not None
    assert cell_sd(*spread, 3, 2) == pytest.approx(0.013)


def test_an_iteration_costs_all_sizes_and_forms() -> None:
    """Two iterations of two sizes at 4 s and 6 s: 10 s each; warm-ups are not counted twice."""
    samples = [
        Sample("R", "R", 1, "sql16", size, "client", number, number == 0, elapsed_ms=1.0, client_ms=ms)
        for size, ms in ((1, 4000.0), (2, 6000.0))
        for number in (0, 1, 2)
    ]

    assert iteration_seconds(samples, 2) == {"sql16": pytest.approx(10.0)}


def test_the_sentence_names_the_cheapest_and_the_studys_own() -> None:
    """Iterations, blocks and hours, and the study's own unless they are the same."""
    plans = Plans(0.01, (Allocation(5, 8, 48, 12.34), Allocation(3, 9, 54, 13.0), Allocation(7, 8, 48, 14.0)))

    said = plans_sentence(plans, "boot", 3)
    assert "8 blocks of 5 iterations a boot, 48 boots in 12 h 20 min; with 3 iterations, 9 blocks, 54" in said
    assert "7 iterations" not in said
    assert "3 iterations" not in plans_sentence(plans, "boot", 5)
