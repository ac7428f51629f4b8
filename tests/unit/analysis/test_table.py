"""Table 1 and the recommendation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.analysis.data import Study, columns_of, noisy_ms, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.result import Analysis
from vnuma.analysis.table import range_coverage


def _run(study: Study) -> Analysis:
    return analyse(study.samples, study.cells, study.design).primary[0]


@pytest.mark.parametrize(
    ("n", "percent"), [(1, 0), (3, 75), (4, 87.5), (5, 93.75), (6, 96.875), (8, 99.21875)]
)
def test_coverage_of_the_range(n: int, percent: float) -> None:
    """The range of n boots covers the median boot with probability 1 - 2^(1-n)."""
    assert 100 * range_coverage(n) == percent


def test_figures_of_a_cell() -> None:
    """Median, range, MAD and ratio of medians are those of the boot medians."""
    ms = np.array([[100.0, 104, 110], [101, 102, 111], [99, 103, 150], [100, 101, 112]])
    row = _run(study_of(ms, columns_of(("2x8",)), iterations=(1.0, 1.0, 1.0))).table[0]
    reference, arm = row.cells
    assert (reference.boots, reference.median, reference.low, reference.high) == (
        8,
        101.0,
        99.0,
        104.0,
    )
    assert (arm.boots, arm.median, arm.mad, arm.coverage) == (4, 111.5, 1.0, 0.875)
    assert arm.ratio is not None
    assert arm.difference == pytest.approx((arm.ratio - 1) * 101)


@pytest.mark.parametrize(
    ("effects", "recommended"),
    [
        ((0, 0, -0.05, -0.03, 0, 0.02), ("2x8",)),
        ((0, 0, 0.03, -0.03, 0, -0.05), ("16x1",)),
        ((0, 0, 0.03, 0, 0, 0.05), ("1x16", "4x4", "8x2")),
        ((0, 0, 0.03, 0.03, 0.03, 0.05), ("1x16",)),
    ],
)
def test_recommended_arms(effects: tuple[float, ...], recommended: tuple[str, ...]) -> None:
    """The fastest arm alone if one is faster, else the reference with what is equivalent to it."""
    found = _run(study_of(noisy_ms(8, 6, 0.001, effects), columns_of()))
    assert found.recommended == recommended
