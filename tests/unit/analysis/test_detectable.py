"""What a run's blocks detect, and how many would tell an effect from none, by each arm's own error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.analysis.data import LABELS, analysed, columns_of, study_of
from tools.calibration.sentences import named_blocks, said_to_detect
from vnuma.analysis.cells import Grid
from vnuma.analysis.compare import compare
from vnuma.analysis.planning import (
    FEWEST_BLOCKS,
    ArmError,
    Scatter,
    blocks_for,
    ratio_for_equivalence,
    ratio_needed,
)
from vnuma.analysis.records import NotEvaluated, PositiveControl
from vnuma.analysis.simulate import Simulated
from vnuma.analysis.variance import noise
from vnuma.analysis.verdict import Label

BAND = math.log(1.01)


def cells(blocks: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Y of six columns, the last of which scatters three times as much."""
    return np.random.default_rng(seed).normal(0, 0.006, (blocks, 6)) * [1, 1, 1, 1, 1, 3]


@pytest.mark.long
@pytest.mark.parametrize("blocks", [6, 9])
def test_calibrate_reads_what_reports_say(blocks: int) -> None:
    """The blocks that undecided arms name, and the effect that all detect; some arms by their own pairs."""
    bases, seen = set(), 0
    for seed in range(12):
        y = cells(blocks, seed)
        found, fast = analysed(study_of(20_000 * np.exp(y), columns_of())), Simulated(y[None], 2)
        assert isinstance(found.detectable_effect, float)
        assert math.log1p(found.detectable_effect) == pytest.approx(said_to_detect(fast)[0], rel=1e-6)
        for place, arm in enumerate(found.arms):
            verdict, named = arm.verdict, named_blocks(fast)[0, place]
            if verdict.label is Label.UNDECIDED and not (verdict.odd_boots or verdict.reference_odd_boots):
                assert arm.contrast.inference is not None
                bases.add(arm.contrast.inference.basis)
                seen += verdict.blocks_needed is not None
                assert verdict.blocks_needed == (named if blocks < named < math.inf else None)

    assert bases == {"pooled", "own"}
    assert seen > 5


def test_a_fixed_order_detects_nothing() -> None:
    """Its verdicts are withheld, whatever the spread."""
    study = study_of(20_000 * np.exp(cells(8, 1)), columns_of())
    study.design = replace(study.design, order="fixed")

    assert isinstance(analysed(study).detectable_effect, NotEvaluated)


def test_an_arm_with_missing_cells_detects_less() -> None:
    """By numpy's least squares of arm + block, which gives its standard error in 6 of 10 blocks."""
    y = np.random.default_rng(2).normal(0, 0.006, (10, 6))
    y[6:, 2] = math.nan
    reference, arms = ("R", "A"), LABELS[2:]
    comparison = compare(Grid(LABELS, tuple(range(10)), y), reference, {arm: arm for arm in arms})
    assert comparison.fit is not None
    scatter = Scatter.of(comparison, noise(comparison.fit.ms, comparison.fit.df, []))
    assert scatter is not None
    gaps = comparison.contrasts[0]
    assert gaps.inference is not None
    assert gaps.inference.basis == "pooled"

    block, column = np.nonzero(~np.isnan(y))
    x = np.hstack([np.equal.outer(block, range(10)), np.equal.outer(column, range(2, 6))]).astype(float)
    factor = np.linalg.inv(x.T @ x)[10, 10]
    worse = scatter.detected([gaps]) / scatter.pooled.detectable_effect(10)

    assert factor == pytest.approx(0.23)
    assert worse == pytest.approx(math.sqrt(factor / (1.5 / 10)))


def test_the_blocks_cover_both_answers() -> None:
    """Of the pooled error: those of the harder of the two questions; without noise the fewest."""
    needed = [blocks_for(ratio, 0.01, 0.01, 4, 2) for ratio in (ratio_needed, ratio_for_equivalence)]

    assert ArmError(0.01, False, 0.0, 4, 2).blocks_to_decide(BAND) == max(one or 0 for one in needed)
    assert ArmError(0.0, False, 0.0, 4, 2).blocks_to_decide(BAND) == FEWEST_BLOCKS
    assert ArmError(0.3, False, 0.0, 4, 2).blocks_to_decide(BAND) is None


@pytest.mark.parametrize("own", [False, True])
def test_no_number_of_blocks_takes_a_coarse_clock_away(own: bool) -> None:
    """What it leaves costs blocks, and beyond a point no number is enough."""
    clear, rounded, lost = (
        ArmError(0.01, own, variance, 4, 2).blocks_to_decide(BAND) for variance in (0.0, 0.002**2, 0.006**2)
    )

    assert clear is not None
    assert rounded is not None
    assert clear < rounded
    assert lost is None


@pytest.mark.parametrize("cause", ["nothing", "a failed control", "a coarse clock"])
def test_no_blocks_are_named_where_equivalence_would_be_withheld(cause: str) -> None:
    """An arm without effect would stay undecided, whatever the blocks."""
    ms = 20_000 * np.exp(cells(6, 3))
    shown = np.round(ms / 100) * 100 if cause == "a coarse clock" else ms
    study = study_of(shown, columns_of(), iterations=(1.0, 1.0, 1.0))
    if cause == "a failed control":
        study.design = replace(study.design, positive_control=PositiveControl("2x8", "slower"))
    open_arms = [one.verdict for one in analysed(study).arms if one.verdict.label is Label.UNDECIDED]
    named = [one.blocks_needed for one in open_arms[1:] if one.blocks_needed]

    assert len(open_arms) > 1
    assert bool(named) == (cause == "nothing")
