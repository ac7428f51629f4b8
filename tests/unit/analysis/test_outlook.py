"""What a study will likely tell: read off the simulated rule, at the study's own layout."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.analysis.data import columns_of
from vnuma.analysis.planning import (
    Spread,
    assumed_spreads,
    ending,
    layout_of,
    needed,
    outlook,
    typical_spread,
)
from vnuma.analysis.records import AnalysisDesign, Column

DESIGN = AnalysisDesign(
    reference="1x16", columns=columns_of(), sizes=(1000,), forms=("client",), vms=("sql16",), blocks=24
)


def test_blocks_for_an_effect_are_those_of_the_published_table() -> None:
    """4 arms with A/A, 0.5% between boots and within them: 9 blocks for 1%, 9 for equivalence."""
    found = needed(DESIGN, typical_spread(3, 1), 0.01)

    assert (found.to_detect, found.for_equivalence) == (9, 9)
    assert needed(DESIGN, Spread("a storm", 0.05), 0.01).to_detect is None


def test_more_sizes_make_a_cell_steadier() -> None:
    """They share the boot and not the iterations."""
    assert [a.cell_sd > b.cell_sd for a, b in zip(assumed_spreads(3, 1), assumed_spreads(3, 4), strict=True)]


def test_an_outlook_needs_six_blocks_and_says_what_is_in_reach() -> None:
    """The effect in reach is found in 80% of studies; below 6 blocks no word is given."""
    spread = Spread("0.6%", 0.006)
    seen = outlook(DESIGN, 8, spread, 0.01)

    assert outlook(DESIGN, 5, spread, 0.01) is None
    assert seen is not None
    again = outlook(DESIGN, 8, spread, seen.detectable)
    assert again is not None
    assert again.power == pytest.approx(0.80, abs=0.002)
    assert seen.power < again.power or seen.detectable <= 0.01


def test_precision_ends_a_study_as_the_specification_simulated_it() -> None:
    """1% at SD 0.6% (0.5% and 0.5%), 4 arms with A/A: 7.5 blocks on average; 0.5%: 17.2, cap 24."""
    spread = typical_spread(3, 1)

    assert ending(DESIGN, 0.01, spread).mean_blocks == pytest.approx(7.5, abs=0.2)
    slow = ending(DESIGN, 0.005, spread)
    assert slow.mean_blocks == pytest.approx(17.2, abs=0.4)
    assert 0.05 < slow.capped < 0.2
    assert ending(DESIGN, 0.001, spread).capped == 1.0


def test_a_reference_alone_compares_nothing() -> None:
    """There is nothing to plan."""
    with pytest.raises(ValueError, match="compares nothing"):
        layout_of(replace(DESIGN, columns=(Column("1x16", "1x16"),)), 8)
