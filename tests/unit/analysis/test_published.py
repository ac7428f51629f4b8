"""A published table of medians: its own figures, and what drift alone would do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vnuma.analysis.published import Table, describe, drift_alone

PAPER = Table(
    ("1x16", "2x8", "4x4", "8x2", "16x1"),
    (500, 1000, 2000, 3000),
    (
        (4994, 5003, 5017, 5093, 5130),
        (19354, 19590, 19906, 19965, 20350),
        (76592, 76920, 78152, 78487, 79324),
        (173080, 173126, 175256, 176099, 178193),
    ),
)


def test_the_papers_table_gives_its_known_figures() -> None:
    """Geometric means 0.46, 1.65, 2.34 and 3.59%, residual SD 0.457%, half-width 0.70%, exponent 0.99."""
    found = describe(PAPER)

    assert [(ratio - 1) * 100 for ratio in found.mean_ratios] == pytest.approx(
        [0, 0.463, 1.648, 2.338, 3.593], abs=0.0006
    )
    assert (found.residual_sd or 0) * 100 == pytest.approx(0.457, abs=0.0006)
    assert (found.half_width or 0) * 100 == pytest.approx(0.704, abs=0.001)
    assert found.exponent == pytest.approx(0.99, abs=0.005)
    assert found.microseconds_per_row == pytest.approx((19.98, 19.35, 19.15, 19.23), abs=0.005)
    assert found.in_order == 4


def test_the_slope_is_the_regression_on_the_logarithm_of_rows() -> None:
    """Percentage points per doubling of rows, against numpy's own least squares."""
    found = describe(PAPER)
    gap = np.log([row[-1] / row[0] for row in PAPER.ms])
    slope = np.polyfit(np.log([size**2 for size in PAPER.sizes]), gap, 1)[0]

    assert found.slopes is not None
    assert found.slopes[-1] == pytest.approx(100 * math.log(2) * slope, abs=1e-9)


def test_one_size_has_no_growth_and_no_residual() -> None:
    """Nothing is invented from one row."""
    found = describe(Table(PAPER.arms, (500,), PAPER.ms[:1]))

    assert (found.slopes, found.exponent, found.residual_sd, found.half_width) == (None, None, None, None)


def test_drift_in_the_order_of_the_table_looks_like_the_paper() -> None:
    """At 3.6% and 0.2% between boots four tables in five are in order; shuffled, hardly one in 100."""
    by_sd = {item.boot_sd: item for item in drift_alone(PAPER, [0.036], studies=4000)}

    assert by_sd[0.002].fixed == pytest.approx(0.82, abs=0.03)
    assert by_sd[0.002].random < 0.02
    assert by_sd[0.0].fixed > 0.95


def test_without_drift_order_is_chance() -> None:
    """Boots that differ by 0.5% and runs by 0.3%: five arms in order in every row is rarer than 1 in 120."""
    for item in drift_alone(PAPER, [0.0], studies=4000):
        assert item.fixed < 1 / 60
        assert item.random < 1 / 60
