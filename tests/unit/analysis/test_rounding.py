"""The error that a coarse clock leaves in a mean, against a simulation of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.analysis.data import analysed, columns_of, study_of
from vnuma.analysis.checks import AaCheck
from vnuma.analysis.rounding import relative_step, rounding_of, staying, step_of


@pytest.mark.parametrize("scatter", [0.0, 0.1, 0.2, 0.35, 0.7])
def test_what_stays_is_the_variance_of_the_bias(scatter: float) -> None:
    """Over all places between two steps: variance of E[round(x + scatter)] - x, numerically."""
    place = np.linspace(0, 1, 400, endpoint=False)
    z = np.linspace(-6, 6, 4001)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    bias = np.round(place[:, None] + scatter * z) @ density - place
    total = float((bias**2).mean())
    assert staying(1.0, scatter**2 + 1 / 12) == pytest.approx(total, abs=3e-4)


@pytest.mark.parametrize(
    ("values", "step"), [((30, 31, 33), 1), ((300, 310, 310, 340), 10), ((7, 7), 7), ((0.5, 0.501), 0.001)]
)
def test_the_step_is_read_off_the_figures(values: tuple[float, ...], step: float) -> None:
    """The smallest difference; figures that are all alike are no finer than themselves."""
    assert step_of(values) == pytest.approx(step)


def test_a_time_and_its_reciprocal_have_the_same_relative_step() -> None:
    """12 blocks' figures between 19 and 21 s: the nearest two are 0.3 to 0.4% apart either way."""
    times = [20133.7, 19684.7, 19948.1, 20729.3, 20067.8, 20342.6, 19564.0, 19863.5, 19123.0, 19367.2]
    assert relative_step([1e6 / time for time in times]) == pytest.approx(relative_step(times))
    assert relative_step(times) == pytest.approx(np.diff(np.sort(np.log(times))).min())


@pytest.mark.parametrize(("values", "step"), [((0, 15, 15), 1.0), ((0, 15, 16, 31), np.log(16 / 15))])
def test_an_iteration_of_zero_leaves_the_relative_step_finite(values: tuple[float, ...], step: float) -> None:
    """CPU time in ticks of 15 or 16 ms: 0 is infinitely far away on the ln scale."""
    assert relative_step(values) == pytest.approx(step)


def test_a_run_with_iterations_of_zero_has_finite_intervals() -> None:
    """Every boot reads 0, 15 and 15 ms: nothing can be told apart, and no limit is infinite."""
    arms = analysed(study_of(np.full((6, 6), 15.0), columns_of(), iterations=(0.0, 1.0, 1.0))).arms
    limits = [arm.verdict.interval for arm in arms]

    assert all(found is not None and 0 < found.low < 0.5 and 2 < found.high < 1e6 for found in limits)


def test_fine_figures_add_nothing() -> None:
    """Steps far below the scatter leave the comparison as it is."""
    times = np.random.default_rng(1).normal(1000, 5, 500).tolist()
    assert rounding_of([times], [1.0]).variance(0.005**2) == pytest.approx(0.0, abs=1e-12)


def test_columns_that_a_coarse_clock_rounds_alike_are_not_shown_to_be_equal() -> None:
    """Every cell of the reference reads 300 ms in steps of 10: the A/A interval is as wide."""
    ms = np.full((8, 6), 300.0)
    ms[:, 2:] = 310
    check = analysed(study_of(ms, columns_of(), iterations=(1.0,))).a_a

    assert isinstance(check, AaCheck)
    assert check.noise_floor > 10 / 300 / 2


def test_an_arm_says_what_its_clock_leaves_in_its_difference() -> None:
    """Cells without scatter: both means keep q^2/12, and so does the interval."""
    ms = np.full((8, 6), 300.0)
    ms[:, 2:] = 310
    arm, *_ = analysed(study_of(ms, columns_of(), iterations=(1.0,))).arms

    assert arm.contrast.rounded == pytest.approx(2 * np.log(310 / 300) ** 2 / 12)
    assert arm.contrast.inference is not None
    assert arm.contrast.inference.se == pytest.approx(arm.contrast.rounded**0.5)


@pytest.mark.parametrize("scatter", [0.0, 1e-7, 1e-5, 1e-3, 0.01, 0.02, 0.03, 0.1, 1.0])
def test_the_variance_that_stays_is_that_of_the_whole_series(scatter: float) -> None:
    """Against 200,000 terms of the Fourier series of the rounding error."""
    k = np.arange(1, 200_001)
    series = float(np.sum(np.exp(-4 * np.pi**2 * k**2 * scatter) / k**2)) / (2 * math.pi**2)

    assert staying(1.0, scatter + 1 / 12) == pytest.approx(series, rel=2e-5, abs=1e-9)
