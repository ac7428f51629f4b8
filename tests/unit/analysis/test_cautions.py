"""The typed warnings of an analysis, and the secondary methods that may disagree with a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.data import (
    EFFECTS,
    G1_MS,
    Study,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    usual_study,
    verdict_of,
)
from vnuma.analysis.records import CellRecord, NotEvaluated, PositiveControl
from vnuma.analysis.sensitivity import sensitivity, sign_flip_p
from vnuma.analysis.verdict import Label
from vnuma.analysis.wording import sentence
from vnuma.domain.study.study import Covariate
from vnuma.domain.workloads.metric import Replicate


def _nearly_apart() -> Study:
    """The reference nearly differs from itself: an A/A p between 0.01 and 0.05."""
    ms = noisy_ms(8, 6, 0.002, EFFECTS)
    ms[:, 1] *= ms[:, 0].mean() / ms[:, 1].mean() * 1.0025
    return study_of(ms, columns_of())


def _drifting() -> Study:
    """It slows down from block to block, and from cell to cell."""
    study = usual_study(sd=0.0005)
    place = {(c.label, c.block): c.position or 0 for c in study.cells}
    return study.scale(lambda s: 1.002 ** place[s.label, s.block])


def _one_boot_differs() -> Study:
    """16x1 is slower by the fit, not by ranks: one boot of six points the other way."""
    ms = noisy_ms(6, 6, 0.004, seed=4)
    ms[:, 5] = ms[:, :2].mean(axis=1) * np.exp([0.02, 0.021, 0.019, 0.02, 0.018, -0.0005])
    return study_of(ms, columns_of())


@pytest.mark.parametrize(
    ("study", "given"),
    [
        (lambda: usual_study(iterations=(1.0,)), {"few_iterations"}),
        (lambda: usual_study(iterations=(1.0, 1.0)), {"few_iterations"}),  # of two the median is a mean
        (lambda: usual_study(iterations=(1.0, 1.0, 1.0)), set()),
        (_nearly_apart, {"aa_note"}),
        (_drifting, {"drift_blocks", "drift_within"}),
        (_one_boot_differs, {"sensitivity"}),
        (lambda: study_of(G1_MS, columns_of()), set()),
    ],
    ids=["1 iteration", "2 iterations", "3 iterations", "A/A", "drift", "ranks disagree", "the golden study"],
)
def test_each_warning_is_given_where_it_holds(study: Callable[[], Study], given: set[str]) -> None:
    """The words stand, and nothing else of this is warned of."""
    found = analysed(study())
    of_these = {"few_iterations", "aa_note", "drift_blocks", "drift_within", "sensitivity"}

    assert caution_ids(found) & of_these == given
    assert found.withheld is None


def test_what_a_workload_says_against_its_own_result_is_among_the_warnings() -> None:
    """A search over sizes, whose largest difference is a maximum; nothing of the kind without it."""
    said = ("A maximum over a search.", "Repeat with one size.")
    told = [analysed(usual_study(), **more).cautions for more in ({"caution": said}, {})]

    assert [[(one.what, one.advice) for one in some if one.id == "workload"] for some in told] == [[said], []]


def test_rank_dissent_is_shown_with_the_other_methods() -> None:
    """Slower by the fit: what signs alone say is shown too, arm by arm."""
    found = analysed(_one_boot_differs())
    verdict = verdict_of(found, "16x1")
    (said,) = [item.what for item in found.cautions if item.id == "sensitivity"]

    assert (verdict.label, verdict.rank_supports) == (Label.SLOWER, False)
    assert sensitivity(found.arms[-1]).sign_flip_p == 4 / 64
    assert re.search(r"16x1 \(.*sign-flip test gives p = 0\.062", said)
    assert all(not sensitivity(arm).dissent for arm in analysed(study_of(G1_MS, columns_of())).arms)


@pytest.mark.parametrize("pairs", [6, 8, 11])
def test_the_sign_flip_test_is_scipys(pairs: int) -> None:
    """Every pattern of signs, two-sided, on the mean."""
    d = np.random.default_rng(pairs).normal(0.004, 0.006, pairs)
    expected = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )

    assert sign_flip_p(d.tolist()) == pytest.approx(expected.pvalue, abs=1e-12)


def test_many_pairs_are_drawn_close_to_the_t_test() -> None:
    """Beyond 14 pairs patterns are drawn: of normal differences p is near the paired t's, and repeats."""
    d = np.random.default_rng(3).normal(0.003, 0.006, 24).tolist()

    assert sign_flip_p(d) == pytest.approx(stats.ttest_1samp(d, 0).pvalue, abs=0.01)
    assert sign_flip_p(d) == sign_flip_p(d)


@pytest.mark.parametrize(
    ("order", "covariate", "fair", "place"),
    [
        ("randomised", "none", True, True),
        ("randomised", "place", False, False),
        ("fixed", "none", False, False),
    ],
)
def test_advice_on_drift_fits_the_design(order: str, covariate: Covariate, fair: bool, place: bool) -> None:
    """Only a random order is called fair, and only a study without the place gets that hint."""
    ms = noisy_ms(8, 6, 0.001) * np.exp(0.05 * np.arange(8))[:, None]
    found = analysed(study_of(ms, columns_of(), order=order), covariate=covariate)
    advice = next(item.advice for item in found.cautions if item.id == "drift_blocks")

    hints = re.findall("Random order keeps|covariate: place", advice)
    assert hints == ["Random order keeps"] * fair + ["covariate: place"] * place


def test_every_caution_has_advice() -> None:
    """Each warning says what to do next."""
    study = usual_study(blocks=3, order="fixed", iterations=(1.0,))
    study.drop(lambda c: c.label == "8x2" or (c.label == "1x16 (A/A)" and c.block < 3))
    study.cells.append(CellRecord("8x2", "8x2", 4, "sql16", "pending"))
    cautions = analysed(study).cautions
    assert len(cautions) > 4
    assert all(caution.what and caution.advice for caution in cautions)
    assert len({caution.id for caution in cautions}) == len(cautions)


def test_an_arm_that_the_plan_left_out_says_so_and_nothing_of_it_is_missing() -> None:
    """It was never to be measured: no cell to repeat, and every block without it is complete."""
    found = analysed(usual_study(blocks=6).without("8x2"))

    assert sentence(verdict_of(found, "8x2")) == "not measured: excluded by the plan"
    assert [arm.arm for arm in found.arms if arm.verdict.left_out] == ["8x2"]
    assert (found.missing, found.complete_blocks) == ((), 6)
    assert caution_ids(found).isdisjoint({"arm_missing", "too_few_boots", "cells_missing"})


@pytest.mark.parametrize(("replicate", "word"), [("boot", "boots"), ("pass", "passes")])
def test_what_is_repeated_has_one_word(replicate: Replicate, word: str) -> None:
    """A machine's passes are not called boots, in verdicts as in warnings and checks."""
    four, five = (
        analysed(usual_study(n), replicate=replicate, positive_control=PositiveControl("16x1"))
        for n in (4, 5)
    )
    said = " ".join([sentence(four.arms[0].verdict), *(item.what for item in four.cautions)])

    assert set(re.findall("boots|passes", said)) == {word}
    assert five.positive_control == NotEvaluated(f"arm 16x1 has fewer than 6 {word}")


@pytest.mark.parametrize("column", [1, 3])
def test_a_column_that_varies_far_more_is_named(column: int) -> None:
    """An arm's or the reference's: it is why no interval uses the pooled error."""
    ms = noisy_ms(8, 6, 0.001)
    ms[:, column] = noisy_ms(8, 1, 0.02, seed=3)[:, 0]
    found = analysed(study_of(ms, columns_of()))

    (caution,) = (item for item in found.cautions if item.id == "variance_gate")
    assert caution.what.split(" varied ")[0] == columns_of()[column].label
    assert all(arm.contrast.rests_on_pairs for arm in found.arms)


def test_columns_that_vary_alike_are_no_caution() -> None:
    """In every second study one of six columns lies beyond the 10% point of F, so this is not a warning."""
    warned = sum(
        item.id == "variance_gate"
        for seed in range(60)
        for item in analysed(study_of(noisy_ms(8, 6, 0.005, seed=seed), columns_of())).cautions
    )

    assert warned <= 8
