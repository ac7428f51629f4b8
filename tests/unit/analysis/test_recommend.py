"""What may be recommended: never the absence of evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.analysis.data import analysed, columns_of, noisy_ms, study_of, usual_study
from vnuma.analysis.conclusions import recommend, undecided
from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Label

OPEN = (Label.UNDECIDED, Label.TOO_FEW)


@pytest.fixture(scope="module")
def template() -> ArmResult:
    """An arm of an analysis, to be given other words."""
    return analysed(usual_study()).arms[0]


def arms_with(template: ArmResult, *words: Label) -> list[ArmResult]:
    """Arms a, b, c, ... with these words."""
    return [
        replace(template, arm=name, verdict=replace(template.verdict, label=word, withheld=None))
        for name, word in zip("abcdefgh", words, strict=False)
    ]


@given(words=st.lists(st.sampled_from(list(Label)), min_size=1, max_size=8))
def test_the_reference_is_no_advice_while_an_arm_may_be_faster(
    template: ArmResult, words: list[Label]
) -> None:
    """Advice needs a faster arm, or that every arm is decided."""
    arms = arms_with(template, *words)

    advised = recommend("ref", arms)

    if Label.FASTER in words:
        assert len(advised) == 1
        assert advised[0] != "ref"
    elif any(word in OPEN for word in words):
        assert advised == ()
        assert len(undecided(arms)) == sum(word in OPEN for word in words)
    else:
        assert advised[0] == "ref"
        assert set(advised[1:]) == {arm.arm for arm in arms if arm.verdict.label is Label.EQUIVALENT}


def test_an_arm_that_the_plan_left_out_keeps_no_advice_back(template: ArmResult) -> None:
    """It was never asked about."""
    arms = arms_with(template, Label.SLOWER, Label.TOO_FEW)
    arms[1] = replace(arms[1], verdict=replace(arms[1].verdict, left_out=True))

    assert recommend("ref", arms) == ("ref",)


def test_an_arm_that_the_plan_left_out_hides_no_other() -> None:
    """Of two arms that are equally fast, both are advised where a third has no cell on this VM."""
    ms = noisy_ms(8, 6, 0.002)
    ms[:, 2:4] *= 0.97
    study = study_of(ms, columns_of())
    study.samples = [sample for sample in study.samples if sample.arm != "16x1"]
    study.cells = [cell for cell in study.cells if cell.arm != "16x1"]

    assert analysed(study).recommended == ("2x8", "4x4")
