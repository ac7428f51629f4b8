"""The fit against an independent computation: dummy-variable least squares of statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS, RegressionResultsWrapper

from tests.unit.analysis.data import G1_MS, LABELS, FloatArray, as_grid, compare_ms
from vnuma.analysis.cells import Grid
from vnuma.analysis.compare import compare
from vnuma.analysis.fit import Place, against, fit, gate, terms


def _ols(y: FloatArray) -> tuple[RegressionResultsWrapper, int]:
    """OLS of arm + block with block dummies and the first column as the base; NaN cells left out."""
    blocks, columns = y.shape
    rows = [(b, c) for b in range(blocks) for c in range(columns) if not np.isnan(y[b, c])]
    x = np.zeros((len(rows), blocks + columns - 1))
    for i, (b, c) in enumerate(rows):
        x[i, b] = 1
        if c:
            x[i, blocks + c - 1] = 1
    return OLS(np.array([y[b, c] for b, c in rows]), x).fit(), blocks


def _weights(arm: int, blocks: int, columns: int, references: int) -> FloatArray:
    w = np.zeros(blocks + columns - 1)
    w[blocks + arm - 1] = 1
    for other in range(1, references):
        w[blocks + other - 1] = -1 / references
    return w


@pytest.mark.parametrize(
    "holes", [(), ((0, 3),), ((1, 0), (2, 5), (4, 1)), ((0, 2), (1, 2), (2, 2), (3, 2), (5, 0))]
)
def test_estimates_and_errors_equal_ols(holes: tuple[tuple[int, int], ...]) -> None:
    """Estimate, standard error, df and mean square equal OLS, with and without missing cells."""
    ms = G1_MS.copy()
    for hole in holes:
        ms[hole] = np.nan
    full = fit(as_grid(ms))
    model, blocks = _ols(np.log(ms))
    assert full.df == model.df_resid
    assert full.ms == pytest.approx(model.mse_resid, rel=1e-9)
    for arm in range(2, 6):
        estimate, factor = full.contrast({LABELS[arm]: 1.0, "R": -0.5, "A": -0.5})
        expected = model.t_test(_weights(arm, blocks, 6, 2))
        assert estimate == pytest.approx(float(np.squeeze(expected.effect)), abs=1e-11)
        assert math.sqrt((full.ms or 0) * factor) == pytest.approx(float(np.squeeze(expected.sd)), rel=1e-9)


@pytest.mark.parametrize("holes", [(), ((1, 0), (2, 5)), tuple((b, 1) for b in range(1, 6))])
def test_the_reference_counts_as_one_arm(holes: tuple[tuple[int, int], ...]) -> None:
    """Against both columns of the reference: OLS in which they share one dummy, gaps or not."""
    ms = G1_MS.copy()
    for hole in holes:
        ms[hole] = np.nan
    y = np.log(ms)
    rows = [(b, c) for b in range(6) for c in range(6) if not np.isnan(y[b, c])]
    x = np.array([[*np.eye(6)[b], *np.eye(6)[c][2:]] for b, c in rows])
    model = OLS(np.array([y[cell] for cell in rows]), x).fit()
    for arm in range(2, 6):
        estimate, factor = against(fit(as_grid(ms)), LABELS[arm], ("R", "A"))
        assert estimate == pytest.approx(model.params[4 + arm], abs=1e-11)
        assert factor == pytest.approx(model.normalized_cov_params[4 + arm, 4 + arm], rel=1e-9)


@pytest.mark.parametrize("place", ["linear", "factor"])
@pytest.mark.parametrize("holes", [(), ((1, 0), (2, 5), (4, 1))])
def test_covariates_equal_ols(place: Place, holes: tuple[tuple[int, int], ...]) -> None:
    """With the place in the model: estimates, errors, df and the gate's nested F are those of OLS."""
    ms = G1_MS.copy()
    for hole in holes:
        ms[hole] = np.nan
    generator = np.random.default_rng(8)
    at = np.array([generator.permutation(6) for _ in range(6)], dtype=np.float64)
    at[np.isnan(ms)] = np.nan
    x = terms(at, place, 6)
    full = fit(as_grid(ms).at(x))

    def ols(columns: list[int], *, shared: bool) -> RegressionResultsWrapper:
        rows = [(b, c) for b in range(6) for c in columns if not np.isnan(ms[b, c])]
        arms = np.eye(6)[:, 2:] if shared else np.eye(6)[:, columns[1:]]
        design = np.array([[*np.eye(6)[b], *arms[c], *x[b, c]] for b, c in rows])
        return OLS(np.log([ms[cell] for cell in rows]), design).fit()

    every = list(range(6))
    model, as_one = ols(every, shared=False), ols(every, shared=True)
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
        rest = ols([c for c in every if c != j], shared=False)
        extra = (model.ssr - rest.ssr) / (model.df_resid - rest.df_resid)
        assert flag.f == pytest.approx(extra / rest.mse_resid, rel=1e-6)


def test_gate_with_missing_cells_is_a_nested_f_test() -> None:
    """With cells missing, the gate's F is the one that compares OLS with and without the column."""
    ms = G1_MS.copy()
    ms[0, 1] = ms[3, 4] = np.nan
    full = fit(as_grid(ms))
    model, _ = _ols(np.log(ms))
    for j, flag in enumerate(gate(full)):
        rest, _ = _ols(np.delete(np.log(ms), j, axis=1))
        extra_df = model.df_resid - rest.df_resid
        expected = (model.ssr - rest.ssr) / extra_df / rest.mse_resid
        assert flag.f == pytest.approx(expected, rel=1e-7)
        assert flag.critical == pytest.approx(stats.f.ppf(0.90, extra_df, rest.df_resid), rel=1e-9)


def test_one_arm_with_two_reference_columns_is_scipys_paired_t() -> None:
    """A single arm is compared with the mean of both reference columns by the paired t, no gate."""
    y = np.log(G1_MS[:, :3])
    found = compare_ms(G1_MS[:, :3], LABELS[:3])
    (inference,) = (item.inference for item in found.contrasts)
    expected = stats.ttest_rel(y[:, 2], y[:, :2].mean(axis=1))
    assert inference is not None
    assert found.gates == ()
    assert inference.basis == "own"
    assert (inference.t, inference.adjusted_p) == pytest.approx((expected.statistic, expected.pvalue))
    limits = np.exp(expected.confidence_interval(0.95))
    assert (inference.interval.low, inference.interval.high) == pytest.approx(tuple(limits))


def test_own_error_is_the_paired_t_test_with_bonferroni() -> None:
    """With two columns the comparison is scipy's paired t-test."""
    labels = ("R", "2x8")
    (contrast,) = compare_ms(G1_MS[:, [0, 2]], labels).contrasts
    inference = contrast.inference
    assert inference is not None
    expected = stats.ttest_rel(np.log(G1_MS[:, 2]), np.log(G1_MS[:, 0]))
    interval = expected.confidence_interval(0.95)
    assert (inference.basis, inference.df) == ("own", 5)
    assert inference.t == pytest.approx(expected.statistic, rel=1e-9)
    assert inference.adjusted_p == pytest.approx(expected.pvalue, rel=1e-9)
    assert [math.log(inference.interval.low), math.log(inference.interval.high)] == pytest.approx(
        [interval.low, interval.high], abs=1e-11
    )


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
