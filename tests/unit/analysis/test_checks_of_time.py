"""Drift, the sentinel, first iteration, odd cells and two groups of boots."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.data import (
    G1_MS,
    FloatArray,
    Study,
    analysed,
    as_grid,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
)
from vnuma.analysis.cells import Boot, collect
from vnuma.analysis.checks import (
    Drift,
    FirstIteration,
    Slope,
    between_blocks,
    check_first_iteration,
    within_blocks,
)
from vnuma.analysis.fit import fit
from vnuma.analysis.outliers import Bimodality, best_split, bimodality, odd_cells
from vnuma.analysis.records import ELAPSED, NotEvaluated


def _positions(
    blocks: int, columns: int, labels: tuple[str, ...], seed: int = 3
) -> dict[tuple[int, str], int]:
    generator = np.random.default_rng(seed)
    return {
        (block, label): block * columns + int(place)
        for block in range(1, blocks + 1)
        for label, place in zip(labels, generator.permutation(columns), strict=True)
    }


def _slope(found: Slope | NotEvaluated) -> Slope:
    assert isinstance(found, Slope)
    return found


def test_block_trend_is_ordinary_regression_of_block_means() -> None:
    """The slope over blocks, its error and p are scipy's regression of block means."""
    full = fit(as_grid(G1_MS))
    expected = stats.linregress(np.arange(1, 7), np.log(G1_MS).mean(axis=1))
    found = _slope(between_blocks(full))
    assert (found.slope, found.se, found.p) == pytest.approx(
        (expected.slope, expected.stderr, expected.pvalue)
    )
    assert found.df == 4


def test_drift_raises_both_alarms() -> None:
    """A steady drift through the run is seen over blocks and within them."""
    ms = noisy_ms(8, 6, 0.0005, seed=5)
    grid = as_grid(ms)
    positions = _positions(8, 6, grid.labels)
    for (block, label), place in positions.items():
        ms[block - 1, grid.labels.index(label)] *= math.exp(0.002 * place)
    full = fit(as_grid(ms))
    over, within = _slope(between_blocks(full)), _slope(within_blocks(full, positions))
    assert over.alarm
    assert within.alarm
    assert within.slope == pytest.approx(0.002, abs=3 * within.se)


def test_drift_without_order_or_blocks_is_not_evaluated() -> None:
    """A fixed order, in which place is arm, no recorded order, or two blocks only: nothing could show it."""
    grid = as_grid(G1_MS)
    fixed = {(b, label): b * 6 + i for b in range(1, 7) for i, label in enumerate(grid.labels)}
    few = fit(as_grid(G1_MS[:2]))
    for found in (within_blocks(fit(grid), fixed), between_blocks(few), within_blocks(few, {})):
        assert isinstance(found, NotEvaluated)
        assert found.reason


def _boots(ms: FloatArray, iterations: tuple[float, ...]) -> tuple[Boot, ...]:
    study = study_of(ms, columns_of(), iterations=iterations)
    found = collect(study.series, study.cells, study.design, vm="sql16", form="client", measure=ELAPSED)
    return found.boots


def test_a_slow_first_iteration_raises_the_alarm() -> None:
    """A first timed iteration 2% above the rest in every boot is reported, with its size."""
    found = check_first_iteration(_boots(G1_MS, (1.02, 1.0, 1.0)))
    assert isinstance(found, FirstIteration)
    assert found.alarm
    assert found.ratio == pytest.approx(1.02)


def test_first_iteration_p_is_scipys_one_sided_t() -> None:
    """The p value over cells is the one-sided one-sample t test's."""
    generator = np.random.default_rng(2)
    times = 1000 * np.exp(generator.normal(0, 0.01, (12, 3)))
    boots = [Boot("1x16", "1x16", i, None, (tuple(map(float, row)),)) for i, row in enumerate(times)]
    found = check_first_iteration(boots)
    assert isinstance(found, FirstIteration)
    scores = np.log(times[:, 0]) - np.log(np.median(times[:, 1:], axis=1))
    assert found.p == pytest.approx(stats.ttest_1samp(scores, 0, alternative="greater").pvalue)


def test_one_iteration_cannot_show_a_warm_up() -> None:
    """With one timed iteration there is nothing to compare it with."""
    assert isinstance(check_first_iteration(_boots(G1_MS, (1.0,))), NotEvaluated)


def test_an_odd_cell_is_flagged_by_name() -> None:
    """A boot 20% off is flagged with its label and block, and stays in the fit."""
    ms = noisy_ms(8, 6, 0.003, seed=4)
    ms[4, 3] *= 1.2
    full = fit(as_grid(ms))
    (found,) = odd_cells(full)
    assert (found.label, found.block) == ("4x4", 5)
    assert found.residual > found.limit
    assert full.df == 35


def test_best_split_equals_trying_every_split() -> None:
    """The share of variance is the best over all two-group splits of the sorted values."""
    r = np.random.default_rng(1).normal(size=(4, 11))
    for row, share in zip(r, best_split(r), strict=True):
        values = np.sort(row)
        total = ((values - values.mean()) ** 2).sum()
        within = [
            ((g - g.mean()) ** 2).sum() + ((h - h.mean()) ** 2).sum()
            for g, h in ((values[:i], values[i:]) for i in range(1, len(values)))
        ]
        assert share == pytest.approx(1 - min(within) / total)


def test_bimodality_needs_variation() -> None:
    """Identical times show nothing, and that is said."""
    assert isinstance(bimodality(fit(as_grid(np.full((6, 6), 1000.0)))), NotEvaluated)


def test_bimodality_false_alarms_are_rare() -> None:
    """In normal data the flag comes up in about 1% of studies (600 seeded ones; 99.9% bound)."""
    generator = np.random.default_rng(11)
    flags = 0
    for _ in range(600):
        found = bimodality(
            fit(as_grid(np.exp(generator.normal(0, 0.01, (8, 5))), ("R", "2x8", "4x4", "8x2", "16x1")))
        )
        assert isinstance(found, Bimodality)
        flags += found.flagged
    assert flags <= stats.binom.ppf(0.999, 600, 0.015)


def watched(per_block: float, arm_effect: float = 0.0) -> Study:
    """A steady study whose sentinel moves by `per_block` and differs between arms."""
    study = study_of(noisy_ms(8, 6, 0.003, (0,) * 6, seed=1), columns_of())
    noise = np.random.default_rng(5)
    study.cells[:] = [
        replace(
            cell,
            sentinel_ms=tuple(
                600 * math.exp(per_block * cell.block + arm_effect * (cell.arm == "16x1") + error)
                for error in noise.normal(0, 0.002, 3)
            ),
        )
        for cell in study.cells
    ]
    return study


@pytest.mark.parametrize(("per_block", "alarm"), [(0.0, False), (0.01, True)])
def test_a_sentinel_that_moves_is_an_alarm_about_the_host(per_block: float, alarm: bool) -> None:
    """1% a block is seen at once; a steady one raises nothing, although an arm changes it by 5%."""
    study = watched(per_block, arm_effect=0.05)
    found = analysed(study)

    assert isinstance(found.sentinel, Drift)
    slope = found.sentinel.between_blocks
    assert isinstance(slope, Slope)
    assert slope.alarm is alarm
    assert slope.slope == pytest.approx(per_block, abs=0.001)
    assert caution_ids(found) & {"sentinel_drift"} == ({"sentinel_drift"} if alarm else set())


def test_it_never_touches_the_times() -> None:
    """Not a covariate: estimates are the same to the last digit with and without it."""
    study = watched(0.01)
    found = analysed(study)
    without = analysed(replace(study, cells=[replace(cell, sentinel_ms=()) for cell in study.cells]))

    assert found.arms == without.arms
    assert isinstance(without.sentinel, NotEvaluated)
