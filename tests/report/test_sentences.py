"""Sentences of many generated studies: none is contradicted by the figures beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.report.build import GOLDEN_STORY, Story
from tests.unit.analysis.data import ARMS, Study, columns_of, study_of
from vnuma.analysis import Analysis, NotEvaluated, analyse
from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Word
from vnuma.analysis.wording import sentence
from vnuma.domain.study.declaration import METHOD
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import answer

Load = Callable[[Story], LoadedRun]
STUDIES = 500
LIMITS = re.compile(r"\((?:\d+%: )?(-?[\d.]+) to (-?[\d.]+)\)")


def generated(seed: int) -> Study:
    """Any number of arms and blocks, spread from calm to wild; slow states, coarse clocks and gaps."""
    rng = np.random.default_rng(seed)
    arms, blocks = int(rng.integers(1, 5)), int(rng.integers(4, 13))
    effects = np.append([0.0, 0.0], rng.choice([0.0, 0.004, -0.015, 0.015, 0.04, -0.04], arms))
    sd = rng.choice([0.0005, 0.002, 0.005, 0.015]) * rng.choice([1.0, 1.0, 2.5], arms + 2)
    ms = 300 * np.exp(effects + rng.normal(0, 1, (blocks, arms + 2)) * sd)
    if rng.random() < 0.3:
        ms[:, -1] *= np.where(rng.random(blocks) < 0.15, 1.11, 1.0)
    if rng.random() < 0.3:
        ms = np.round(ms / 3) * 3
    iterations = (1.0,) if rng.random() < 0.3 else (1.0, 1.001, 0.999)
    sizes = (500, 2000) if rng.random() < 0.5 else (2000,)
    study = study_of(ms, columns_of(ARMS[:arms]), sizes=sizes, iterations=iterations)
    if rng.random() < 0.3:
        gone = {(int(b), int(k)) for b, k in rng.integers(0, blocks, (3, 2))}
        labels = [column.label for column in study.design.columns]
        study.drop(lambda cell: (cell.block, labels.index(cell.label)) in gone)
    return study


@pytest.fixture(scope="module")
def found() -> list[Analysis]:
    """The deciding analysis of each."""
    studies = map(generated, range(STUDIES))
    return [analyse(study.samples, study.cells, study.design).primary[0] for study in studies]


def contradictions(arm: ArmResult) -> list[str]:
    """What a verdict's own figures, as they are shown, say against its sentence."""
    verdict, text = arm.verdict, sentence(arm.verdict)
    if verdict.withheld or verdict.interval is None or verdict.word is Word.TOO_FEW:
        return []
    shown = LIMITS.search(text)
    low, high = map(float, shown.groups()) if shown else (0.0, 0.0)
    band = verdict.margin * 100
    wrong = {
        "a direction whose shown limits hold 0": verdict.word in (Word.SLOWER, Word.FASTER) and low <= 0,
        "undecided although the shown limits exclude 0": verdict.word is Word.UNDECIDED
        and not low <= 0 <= high,
        "equivalent beyond the band": verdict.word is Word.EQUIVALENT and not -band < low <= high < band,
        "at least the band, and a limit inside it": "by at least" in text and low < band,
        "decided by blocks that were run": verdict.blocks_needed is not None
        and verdict.blocks_needed <= arm.contrast.boots,
        "not detectable, and 0 outside": verdict.word is Word.EQUIVALENT
        and "detectable" not in text
        and not verdict.interval.contains(1.0),
        "no limits": shown is None,
    }
    return [f"{arm.arm}: {what}: {text}" for what, holds in wrong.items() if holds]


def test_every_word_is_among_the_generated_studies(found: list[Analysis]) -> None:
    """Else the other tests would read nothing."""
    assert {arm.verdict.word for one in found for arm in one.arms} == set(Word)
    assert any(one.withheld for one in found)
    assert any(one.recommended for one in found)


def test_no_verdict_is_contradicted_by_the_figures_it_shows(found: list[Analysis]) -> None:
    """Limits beside a word say the same as the word, at the digits shown."""
    assert [text for one in found for arm in one.arms for text in contradictions(arm)] == []


def test_no_advice_stands_beside_arms_that_are_not_decided(loaded: Load, found: list[Analysis]) -> None:
    """ "Use 1x16" only where no measured arm may still be faster; any other advice is of a faster arm."""
    run = loaded(GOLDEN_STORY)
    for one in found:
        said = "".join(
            text for text, _ in answer(replace(run, result=replace(run.result, analyses=(one,))), one)
        )
        words = {arm.arm: arm.verdict.word for arm in one.arms}
        advised = re.search(r"Use (\S+?)[:, ]", said)
        if advised and advised[1] == "1x16":
            assert not {Word.UNDECIDED, Word.TOO_FEW, Word.FASTER} & set(words.values()), said
        elif advised:
            assert words[advised[1]] is Word.FASTER, said
        elif not one.withheld:
            open_arms = [arm for arm, word in words.items() if word in (Word.UNDECIDED, Word.TOO_FEW)]
            assert open_arms, said
            assert all(arm in said for arm in open_arms), said


def test_no_verdict_changes_without_a_new_number_of_the_method(found: list[Analysis]) -> None:
    """Runs store the number before their first boot. Raise METHOD together with this hash."""
    words = [f"{arm.arm} {arm.verdict.word} {arm.verdict.withheld}" for one in found for arm in one.arms]
    assert (METHOD, hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]) == (2, "7a0438ed1bfecbf5")


def test_what_a_study_likely_detects_is_not_less_than_its_intervals_allow(found: list[Analysis]) -> None:
    """An interval does not exclude less than its half-width: nothing smaller is said to be detected."""
    for one in found:
        widths = [arm.verdict.half_width for arm in one.arms if arm.verdict.half_width is not None]
        if not isinstance(one.detectable_effect, NotEvaluated) and not one.missing and one.blocks >= 6:
            assert one.detectable_effect >= max(widths) * 0.99, (one.detectable_effect, widths)
