"""The drift sentinel: an alarm about the host, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.analysis.data import Study, columns_of, noisy_ms, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.checks import Drift, Slope
from vnuma.analysis.records import NotEvaluated


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
    (found,) = analyse(study.samples, study.cells, study.design).primary

    assert isinstance(found.sentinel, Drift)
    slope = found.sentinel.between_blocks
    assert isinstance(slope, Slope)
    assert slope.alarm is alarm
    assert slope.slope == pytest.approx(per_block, abs=0.001)
    assert ("sentinel_drift" in {caution.id for caution in found.cautions}) is alarm


def test_it_never_touches_the_times() -> None:
    """Not a covariate: estimates are the same to the last digit with and without it."""
    study = watched(0.01)
    (found,) = analyse(study.samples, study.cells, study.design).primary
    bare = [replace(cell, sentinel_ms=()) for cell in study.cells]
    (without,) = analyse(study.samples, bare, study.design).primary

    assert found.arms == without.arms
    assert isinstance(without.sentinel, NotEvaluated)
