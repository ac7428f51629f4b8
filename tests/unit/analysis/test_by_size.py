"""Verdicts at single sizes, compared with the overall one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit.analysis.data import Study, columns_of, noisy_ms, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label, Withheld

SIZES = (500, 1000)


def at_sizes(*effects: float, other: tuple[float, float] = (0.0, 0.0), sd: float = 0.002) -> Study:
    """Arm 2x8 differs by one ratio minus 1 at each size; 4x4 by the other ones."""
    study = study_of(noisy_ms(8, 4, sd), columns_of(("2x8", "4x4")), sizes=SIZES)
    factors = {
        (arm, size): 1 + effect
        for arm, own in (("2x8", effects), ("4x4", other))
        for size, effect in zip(SIZES, own, strict=True)
    }
    study.samples = [
        s._replace(elapsed_ms=(s.elapsed_ms or 0.0) * factors.get((s.label, s.size), 1.0))
        for s in study.samples
    ]
    return study


def found(study: Study) -> Analysis:
    """The deciding analysis."""
    (primary,) = analyse(study.samples, study.cells, study.design).primary
    return primary


def said(analysis: Analysis) -> dict[str, str]:
    """Its warnings by id."""
    return {caution.id: caution.what for caution in analysis.cautions}


def test_sizes_with_opposite_verdicts_have_no_overall_one() -> None:
    """3% slower at one size and 3% faster at the other: neither equal nor different, and not advised."""
    analysis = found(at_sizes(0.03, -0.03))

    verdict = next(arm.verdict for arm in analysis.arms if arm.arm == "2x8")
    assert (verdict.label, verdict.withheld) == (Label.UNDECIDED, Withheld.SIZES_OPPOSED)
    assert "2x8" not in analysis.recommended
    assert analysis.withheld is None
    apart = [(item.arm, item.size, item.verdict.label) for item in analysis.differing_sizes]
    assert apart == [("2x8", 500, Label.SLOWER), ("2x8", 1000, Label.FASTER)]
    text = said(analysis)["size_apart"]
    assert text.startswith("At 500 rows a side 2x8 is slower by 3.")
    assert "; at 1,000 rows a side 2x8 is faster by " in text


def test_an_effect_at_one_size_alone_is_another_class_at_the_other() -> None:
    """Slower over all, because it is far slower at one size; equivalent at the other."""
    analysis = found(at_sizes(0.06, 0.0))

    assert {arm.arm: arm.verdict.label for arm in analysis.arms}["2x8"] is Label.SLOWER
    assert [(item.size, item.verdict.label) for item in analysis.differing_sizes] == [
        (1000, Label.EQUIVALENT)
    ]


def test_arms_that_share_a_word_at_a_size_share_one_sentence() -> None:
    """One warning for all arms: nobody reads the same sentence once an arm."""
    analysis = found(at_sizes(0.0, 0.06, other=(0.0, 0.06)))

    assert [caution.what for caution in analysis.cautions if caution.id == "size_apart"] == [
        "At 500 rows a side 2x8 and 4x4 are equivalent within 1%."
    ]


def test_arms_of_a_word_keep_their_own_figures() -> None:
    """Sizes in their order; at each, the word once and every arm's difference."""
    text = said(found(at_sizes(0.03, -0.03, other=(0.04, -0.04))))["size_apart"]
    figures = r"\d\.\d% \([^)]*\)"

    assert re.fullmatch(
        rf"At 500 rows a side 2x8 is slower by {figures} and 4x4 by {figures}; "
        rf"at 1,000 rows a side 2x8 is faster by {figures} and 4x4 by {figures}\.",
        text,
    )


@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_sizes_that_agree_are_not_mentioned(effect: float) -> None:
    """The same verdict everywhere, or a size that is too noisy for one, is not a disagreement."""
    analysis = found(at_sizes(effect, effect))

    assert analysis.differing_sizes == ()
    assert "size_apart" not in said(analysis)


def test_words_that_are_withheld_are_withheld_at_single_sizes_too() -> None:
    """A fixed order gives no word at any size, so none can disagree."""
    ms = noisy_ms(8, 4, 0.002)
    study = study_of(ms * np.array([1, 1, 1.05, 1]), columns_of(("2x8", "4x4")), sizes=SIZES, order="fixed")

    assert found(study).differing_sizes == ()
