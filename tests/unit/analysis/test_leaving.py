"""Boots until every arm has left, for planning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.analysis.data import columns_of
from vnuma.analysis.planning import Spread, effects_in_turn, leaving
from vnuma.analysis.records import AnalysisDesign


def design(blocks: int) -> AnalysisDesign:
    """Four arms against a reference with A/A."""
    return AnalysisDesign("1x16", columns_of(), (500,), ("server",), ("sql16",), blocks, stop="decided")


@pytest.mark.parametrize(
    ("cell_sd", "boots"), [(0.0045, 48.5), (0.0060, 65.0)], ids=["boots' SD 0.3%", "0.5%"]
)
def test_likely_boots_are_those_of_an_independent_simulation(cell_sd: float, boots: float) -> None:
    """Arms at 0, 0.5, 1 and 3%, at most 24 blocks; three Monte Carlo errors of 400 studies."""
    found = leaving(design(24), Spread("one size", cell_sd))

    assert found.likely_boots == pytest.approx(boots, abs=3.0)
    assert found.fewest_boots < found.likely_boots < found.most_boots <= 144
    assert found.decided > 0.95


def test_a_host_too_noisy_for_the_band_is_named() -> None:
    """At an SD of 2% every design that is offered leaves some arm undecided in most studies."""
    assert leaving(design(12), Spread("2%", 0.02)).advised_blocks is None
    assert leaving(design(12), Spread("0.6%", 0.006)).advised_blocks == 16


def test_the_advised_blocks_decide_every_arm_in_four_of_five_studies() -> None:
    """What is advised is simulated with as many blocks; 400 studies, three Monte Carlo errors."""
    for sd in (0.0038, 0.0060):
        spread = Spread("one size", sd)
        advised = leaving(design(12), spread).advised_blocks
        assert advised is not None
        assert leaving(design(advised), spread).decided > 0.80 - 3 * 0.02


def test_a_design_without_a_a_is_advised_more_blocks() -> None:
    """The reference's own error is larger: with 16 blocks, 56% of its studies decide every arm (1,000)."""
    single = replace(design(16), columns=columns_of(a_a=False))
    found = leaving(single, Spread("0.6%", 0.0062))

    assert found.decided < 0.80
    assert found.advised_blocks == 24


def test_a_single_arm_is_planned_for_the_effect_that_is_hardest_to_decide() -> None:
    """Halfway between none and the band: planned for none, a study would be half as long."""
    assert effects_in_turn(1) == [0.5]
    assert sorted(effects_in_turn(4)) == [0.0, 0.5, 1.0, 3.0]
