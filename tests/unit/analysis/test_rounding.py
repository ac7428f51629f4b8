"""The error that a coarse clock leaves in a mean, against a simulation of its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.analysis.data import analysed, columns_of, study_of
from vnuma.analysis.checks import AaCheck
from vnuma.analysis.rounding import clock_steps, rounding_of, staying, step_of
from vnuma.analysis.verdict import Withheld


@pytest.mark.parametrize(
    ("values", "step"), [((30, 31, 33), 1), ((300, 310, 310, 340), 10), ((7, 7), 7), ((0.5, 0.501), 0.001)]
)
def test_the_step_is_read_off_the_figures(values: tuple[float, ...], step: float) -> None:
    """The smallest difference; figures that are all alike are no finer than themselves."""
    assert step_of(values) == pytest.approx(step)


@pytest.mark.parametrize(
    ("values", "printed", "step", "known"),
    [
        ((5000.12, 5000.12), True, 0.01 / 5000.12, False),
        ((5000.0, 5000.0), True, 1 / 5000, False),
        ((2e9, 2e9), True, 1 / 2e9, False),
        ((5000.12, 5000.12), False, 1.0, False),
        ((5000.0, 5010.0), True, math.log(5010 / 5000), True),
        ((0.0, 5.0), True, 1.0, True),
    ],
)
def test_equal_figures_show_no_step(
    values: tuple[float, ...], printed: bool, step: float, known: bool
) -> None:
    """Their error is that of the printed digits, of times the whole figure; equality is not shown."""
    steps = clock_steps([values], printed=printed)
    rounding = rounding_of(steps, [1.0])

    assert math.sqrt(12 * rounding.variance(0.0)) == pytest.approx(step)
    assert rounding.step == (pytest.approx(step) if known else math.inf)
    assert rounding_of(steps, [0.0]).step == 0


def test_a_program_that_always_prints_the_same_is_not_called_equivalent() -> None:
    """The intervals have no width to speak of, and a caution says that nothing varied."""
    study = study_of(np.full((6, 6), 5000.12), columns_of(), iterations=(1.0, 1.0, 1.0))
    found = analysed(replace(study, design=replace(study.design, printed=True)))

    assert {arm.verdict.withheld for arm in found.arms} == {Withheld.COARSE_CLOCK}
    assert all(arm.verdict.half_width is not None and arm.verdict.half_width < 1e-5 for arm in found.arms)
    assert {"no_variation"} <= {caution.id for caution in found.cautions}
    assert "coarse_clock" not in {caution.id for caution in found.cautions}


def test_a_run_with_iterations_of_zero_has_finite_intervals() -> None:
    """Every boot reads 0, 15 and 15 ms: nothing can be told apart, and no limit is infinite."""
    arms = analysed(study_of(np.full((6, 6), 15.0), columns_of(), iterations=(0.0, 1.0, 1.0))).arms
    limits = [arm.verdict.interval for arm in arms]

    assert all(found is not None and 0 < found.low < 0.5 and 2 < found.high < 1e6 for found in limits)


def test_columns_that_a_coarse_clock_rounds_alike_are_not_shown_to_be_equal() -> None:
    """Every cell of the reference reads 300 ms in steps of 10: the A/A interval is as wide."""
    ms = np.full((8, 6), 300.0)
    ms[:, 2:] = 310
    check = analysed(study_of(ms, columns_of(), iterations=(1.0,))).a_a

    assert isinstance(check, AaCheck)
    assert check.noise_floor > 10 / 300 / 2
    assert check.se == pytest.approx(math.sqrt(2 * np.log(310 / 300) ** 2 / 12))


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
