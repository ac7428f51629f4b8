"""Verdicts at single sizes, compared with the overall one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.unit.analysis.data import (
    Study,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    verdict_of,
    words,
)
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label, Withheld

SIZES = (500, 1000)


def at_sizes(*effects: float, other: tuple[float, float] = (0.0, 0.0), sd: float = 0.002) -> Study:
    """Arm 2x8 differs by one ratio minus 1 at each size; 4x4 by the other ones."""
    factors = {"2x8": dict(zip(SIZES, effects, strict=True)), "4x4": dict(zip(SIZES, other, strict=True))}
    study = study_of(noisy_ms(8, 4, sd), columns_of(("2x8", "4x4")), sizes=SIZES)
    return study.scale(lambda s: 1 + factors.get(s.label, {}).get(s.size, 0.0))


def apart(found: Analysis) -> list[tuple[str, int, Label]]:
    """The sizes at which an arm's verdict is another one."""
    return [(item.arm, item.size, item.verdict.label) for item in found.differing_sizes]


def said(found: Analysis) -> list[str]:
    """The warnings about them."""
    return [caution.what for caution in found.cautions if caution.id == "size_apart"]


def test_sizes_with_opposite_verdicts_have_no_overall_one() -> None:
    """3% slower at one size and 3% faster at the other: neither equal nor different, and not advised.

    Sizes in their order; at each, the word once and every arm's difference.
    """
    found = analysed(at_sizes(0.03, -0.03, other=(0.04, -0.04)))
    verdict, figures = verdict_of(found, "2x8"), r"\d\.\d% \([^)]*\)"

    assert (verdict.label, verdict.withheld) == (Label.UNDECIDED, Withheld.SIZES_OPPOSED)
    assert (found.recommended, found.withheld) == (("1x16",), None)
    assert sorted(apart(found)) == [
        (arm, size, word)
        for arm in ("2x8", "4x4")
        for size, word in ((500, Label.SLOWER), (1000, Label.FASTER))
    ]
    (text,) = said(found)
    assert re.fullmatch(
        rf"At 500 rows a side 2x8 is slower by {figures} and 4x4 by {figures}; "
        rf"at 1,000 rows a side 2x8 is faster by {figures} and 4x4 by {figures}\.",
        text,
    )


def test_an_effect_at_one_size_alone_is_another_class_at_the_other() -> None:
    """Slower over all, because it is far slower at one size; equivalent at the other."""
    found = analysed(at_sizes(0.06, 0.0))

    assert words(found)["2x8"] is Label.SLOWER
    assert apart(found) == [("2x8", 1000, Label.EQUIVALENT)]


def test_arms_that_share_a_word_at_a_size_share_one_sentence() -> None:
    """One warning for all arms: nobody reads the same sentence once an arm."""
    found = analysed(at_sizes(0.0, 0.06, other=(0.0, 0.06)))

    assert said(found) == ["At 500 rows a side 2x8 and 4x4 are equivalent within 1%."]


@pytest.mark.parametrize("study", [at_sizes(0.0, 0.0), at_sizes(0.05, 0.05)], ids=["equal", "slower"])
def test_sizes_that_agree_are_not_mentioned(study: Study) -> None:
    """The same verdict everywhere, or a size that is too noisy for one, is not a disagreement."""
    found = analysed(study)

    assert apart(found) == []
    assert caution_ids(found).isdisjoint({"size_apart"})


def test_words_that_are_withheld_are_withheld_at_single_sizes_too() -> None:
    """A fixed order gives no word at any size, so none can disagree."""
    ms = noisy_ms(8, 4, 0.002) * np.array([1, 1, 1.05, 1])

    assert apart(analysed(study_of(ms, columns_of(("2x8", "4x4")), sizes=SIZES, order="fixed"))) == []
