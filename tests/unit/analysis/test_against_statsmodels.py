"""The fit against an independent computation: dummy-variable least squares of statsmodels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.data import G1_MS, LABELS, FloatArray, as_grid, compare_ms, log_limits
from vnuma.analysis.cells import Grid
from vnuma.analysis.checks import Slope, within_blocks
from vnuma.analysis.compare import compare
from vnuma.analysis.fit import Place, against, fit, gate, terms

Holes = tuple[tuple[int, int], ...]


def _with(holes: Holes) -> FloatArray:
    """G1 without these cells."""
    ms = G1_MS.copy()
    for hole in holes:
        ms[hole] = np.nan
    return ms


def _ols(ms: FloatArray, arms: FloatArray, more: FloatArray | None = None) -> Any:
    """OLS with a dummy for each block, a row of `arms` for each column, and more; NaN cells left out."""
    from statsmodels.regression.linear_model import OLS  # noqa: PLC0415 - a second, for these tests alone

    y, blocks = np.log(ms), np.eye(len(ms))
    rows = [(b, c) for b in range(len(ms)) for c in range(ms.shape[1]) if not np.isnan(y[b, c])]
    extra = [() if more is None else more[cell] for cell in rows]
    x = np.array([[*blocks[b], *arms[c], *add] for (b, c), add in zip(rows, extra, strict=True)])
    return OLS(np.array([y[cell] for cell in rows]), x).fit()


APART, SHARED = np.eye(6)[:, 1:], np.eye(6)[:, 2:]
"""Dummies of the arms: the reference's two columns apart, or as one arm."""


@pytest.mark.parametrize(
    "holes", [(), ((0, 3),), ((1, 0), (2, 5), (4, 1)), ((0, 2), (1, 2), (2, 2), (3, 2), (5, 0))]
)
def test_estimates_and_errors_equal_ols(holes: Holes) -> None:
    """Estimate, standard error, df and mean square equal OLS, with and without missing cells."""
    ms = _with(holes)
    full, model = fit(as_grid(ms)), _ols(ms, APART)
    assert full.df == model.df_resid
    assert full.ms == pytest.approx(model.mse_resid, rel=1e-9)
    for arm in range(2, 6):
        estimate, factor = full.contrast({LABELS[arm]: 1.0, "R": -0.5, "A": -0.5})
        weights = np.zeros(11)
        weights[[5 + arm, 6]] = 1, -1 / 2
        expected = model.t_test(weights)
        assert estimate == pytest.approx(float(np.squeeze(expected.effect)), abs=1e-11)
        assert math.sqrt((full.ms or 0) * factor) == pytest.approx(float(np.squeeze(expected.sd)), rel=1e-9)


@pytest.mark.parametrize("holes", [(), ((1, 0), (2, 5)), tuple((b, 1) for b in range(1, 6))])
def test_the_reference_counts_as_one_arm(holes: Holes) -> None:
    """Against both columns of the reference: OLS in which they share one dummy, gaps or not."""
    ms = _with(holes)
    model = _ols(ms, SHARED)
    for arm in range(2, 6):
        estimate, factor = against(fit(as_grid(ms)), LABELS[arm], ("R", "A"))
        assert estimate == pytest.approx(model.params[4 + arm], abs=1e-11)
        assert factor == pytest.approx(model.normalized_cov_params[4 + arm, 4 + arm], rel=1e-9)


@pytest.mark.parametrize("place", ["linear", "factor"])
@pytest.mark.parametrize("holes", [(), ((1, 0), (2, 5), (4, 1))])
def test_covariates_equal_ols(place: Place, holes: Holes) -> None:
    """With the place in the model: estimates, errors, df and the gate's nested F are those of OLS."""
    ms = _with(holes)
    generator = np.random.default_rng(8)
    at = np.array([generator.permutation(6) for _ in range(6)], dtype=np.float64)
    at[np.isnan(ms)] = np.nan
    x = terms(at, place, 6)
    full = fit(as_grid(ms).at(x))
    model, as_one = _ols(ms, APART, x), _ols(ms, SHARED, x)
    assert full.df == model.df_resid
    assert full.ms == pytest.approx(model.mse_resid, rel=1e-9)
    for arm in range(2, 6):
        estimate, factor = full.contrast({LABELS[arm]: 1.0, "R": -1.0})
        assert estimate == pytest.approx(model.params[5 + arm], abs=1e-11)
        assert factor == pytest.approx(model.normalized_cov_params[5 + arm, 5 + arm], rel=1e-9)
        # Against both columns as one arm: the slope is that of the model which keeps them apart.
        _, factor = against(full, LABELS[arm], ("R", "A"))
        assert factor == pytest.approx(as_one.normalized_cov_params[4 + arm, 4 + arm], rel=0.05)
    for j, flag in enumerate(gate(full)):
        rest = _ols(np.delete(ms, j, axis=1), np.eye(5)[:, 1:], np.delete(x, j, axis=1))
        extra = (model.ssr - rest.ssr) / (model.df_resid - rest.df_resid)
        assert flag.f == pytest.approx(extra / rest.mse_resid, rel=1e-6)


def test_trend_within_blocks_is_one_covariate_added_to_the_fit() -> None:
    """Slope, error and p equal OLS of arm + block + place, with a cell missing too."""
    ms = _with(((2, 3),))
    order = np.array([np.random.default_rng(block).permutation(6) for block in range(6)])
    positions = {(b + 1, LABELS[c]): 6 * b + int(order[b, c]) for b in range(6) for c in range(6)}
    boots = np.where(np.isnan(ms), 99, order)
    model = _ols(ms, APART, boots.argsort(axis=1).argsort(axis=1)[:, :, None].astype(np.float64))
    found = within_blocks(fit(as_grid(ms)), positions)
    assert isinstance(found, Slope)
    assert found.df == model.df_resid
    assert (found.slope, found.se, found.p) == pytest.approx(
        (model.params[-1], model.bse[-1], model.pvalues[-1])
    )


def test_gate_with_missing_cells_is_a_nested_f_test() -> None:
    """With cells missing, the gate's F is the one that compares OLS with and without the column."""
    ms = _with(((0, 1), (3, 4)))
    model = _ols(ms, APART)
    for j, flag in enumerate(gate(fit(as_grid(ms)))):
        rest = _ols(np.delete(ms, j, axis=1), np.eye(5)[:, 1:])
        extra_df = model.df_resid - rest.df_resid
        expected = (model.ssr - rest.ssr) / extra_df / rest.mse_resid
        assert flag.f == pytest.approx(expected, rel=1e-7)
        assert flag.critical == pytest.approx(stats.f.ppf(0.90, extra_df, rest.df_resid), rel=1e-9)


@pytest.mark.parametrize("columns", [[0, 1, 2], [0, 2]], ids=["two reference columns", "one"])
def test_a_single_arm_is_compared_by_scipys_paired_t(columns: list[int]) -> None:
    """With the mean of the reference's columns, and no gate."""
    y = np.log(G1_MS[:, columns])
    found = compare_ms(G1_MS[:, columns], [LABELS[column] for column in columns])
    (inference,) = (item.inference for item in found.contrasts)
    expected = stats.ttest_rel(y[:, -1], y[:, :-1].mean(axis=1))
    limits = expected.confidence_interval(0.95)
    assert inference is not None
    assert (found.gates, inference.basis, inference.df) == ((), "own", 5)
    assert (inference.t, inference.adjusted_p) == pytest.approx((expected.statistic, expected.pvalue))
    assert log_limits(inference.interval) == pytest.approx([limits.low, limits.high], abs=1e-11)


def test_columns_that_share_no_block_with_the_reference_are_not_compared() -> None:
    """An arm that only ran where the reference did not has no estimate, and does not disturb the others."""
    ms = G1_MS.copy()
    ms[:3, 5] = np.nan
    ms[3:, :5] = np.nan
    comparison = compare(as_grid(ms), ("R", "A"), {label: label for label in LABELS[2:]})
    last = comparison.contrasts[-1]
    assert (last.boots, last.log_ratio, last.inference) == (0, None, None)
    alone = compare_ms(G1_MS[:3, :5], LABELS[:5])
    assert [c.inference for c in comparison.contrasts[:-1]] == [c.inference for c in alone.contrasts]


def test_grid_without_the_reference_compares_nothing() -> None:
    """Without a reference column every contrast is absent rather than guessed."""
    grid = Grid(("2x8", "4x4"), (1, 2), np.log(G1_MS[:2, 2:4]))
    comparison = compare(grid, ("R",), {"2x8": "2x8", "4x4": "4x4"})
    assert comparison.fit is None
    assert [c.log_ratio for c in comparison.contrasts] == [None, None]


def test_the_range_of_one_more_boot_next_to_two_reference_columns() -> None:
    """Its error: that of the mean difference, and the mean variance of the arm against either column."""
    ms = G1_MS[:, [0, 1, 2]]
    arm, first, second = np.log(ms[:, 2]), np.log(ms[:, 0]), np.log(ms[:, 1])
    d = arm - (first + second) / 2
    one = (np.var(arm - first, ddof=1) + np.var(arm - second, ddof=1)) / 2
    width = stats.t.ppf(0.975, 5) * math.sqrt(stats.sem(d) ** 2 + one)

    (found,) = compare_ms(ms, ("R", "A", "2x8")).contrasts

    assert found.prediction is not None
    assert math.log(found.prediction.high) == pytest.approx(float(d.mean()) + width)
