"""Secondary methods: compared with scipy, and silent unless they disagree with a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.data import G1_MS, analysed, caution_ids, columns_of, noisy_ms, study_of
from vnuma.analysis.sensitivity import sensitivity, sign_flip_p
from vnuma.analysis.verdict import Label


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


def test_methods_that_agree_are_not_mentioned() -> None:
    """The golden study: every arm agrees, and nothing is warned of."""
    found = analysed(study_of(G1_MS, columns_of()))

    assert all(not sensitivity(arm).dissent for arm in found.arms)
    assert "sensitivity" not in caution_ids(found)


def test_a_word_that_the_others_do_not_support_is_named() -> None:
    """Slower by the fit; one boot of six points the other way, which signs alone do not forgive."""
    ms = noisy_ms(6, 6, 0.004, seed=4)
    ms[:, 5] = ms[:, :2].mean(axis=1) * np.exp([0.02, 0.021, 0.019, 0.02, 0.018, -0.0005])
    found = analysed(study_of(ms, columns_of()))
    arm = next(item for item in found.arms if item.arm == "16x1")
    (said,) = [item.what for item in found.cautions if item.id == "sensitivity"]

    assert arm.verdict.label is Label.SLOWER
    assert sensitivity(arm).sign_flip_p == 4 / 64
    assert "16x1 (" in said
    assert "sign-flip test gives p = 0.062" in said
