"""The golden examples G1 to G8: every figure to the digits given."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import special, stats

from tests.unit.analysis.data import G1_MS, LABELS, columns_of, compare_ms, g2_ms, study_of
from vnuma.analysis import distributions
from vnuma.analysis.analyse import analyse
from vnuma.analysis.compare import Comparison, Contrast, Inference
from vnuma.analysis.growth import slope_weights
from vnuma.analysis.rank import rank_estimate
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.variance import pilot_upper
from vnuma.analysis.verdict import Label, Rules, decide
from vnuma.analysis.wording import amount, signed_amount

RULES = Rules(margin=0.01, withheld=None, control_failed=False)


def _arm(comparison: Comparison, arm: str) -> tuple[Contrast, Inference]:
    contrast = next(item for item in comparison.contrasts if item.arm == arm)
    assert contrast.inference is not None
    return contrast, contrast.inference


def _exactly(value: float | None, printed: str) -> None:
    """The value rounds to the printed one, digit for digit."""
    assert value is not None
    mantissa, _, exponent = printed.partition("e")
    last_digit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    assert value == pytest.approx(float(printed), abs=0.5001 * last_digit, rel=0)


def _all_exactly(values: Sequence[float | None], printed: str) -> None:
    for value, text in zip(values, printed.split(), strict=True):
        _exactly(value, text)


G1 = """
2x8  1.00478895 2.6475551 1.00000471 1.00959608 1.00059357 1.00900192  1.00505497 1.00037396 1.00975789
4x4  1.01875922 10.2994782 1.01390846 1.02363319 1.01450551 1.02303077  1.01880647 1.01459402 1.02313983
8x2  1.02248299 12.3213847 1.01761450 1.02737477 1.01821373 1.02677015  1.02285160 1.01659863 1.02608310
16x1 1.03676434 20.0080863 1.03182785 1.04172445 1.03243545 1.04111138  1.03690561 1.03007532 1.04225146
"""
"""Ratio, t, the 95% and the 90% interval; the rank companion and its interval."""


@pytest.mark.parametrize(
    ("arm", "p", "word", "beyond", "detectable"),
    [
        ("2x8", (0.049713333, 5e-10), Label.EQUIVALENT, False, True),
        ("4x4", (1e-9, 5e-10), Label.SLOWER, True, False),
        ("8x2", (0.0, 1e-9), Label.SLOWER, True, False),
        ("16x1", (0.0, 1e-9), Label.SLOWER, True, False),
    ],
)
def test_g1_arms(arm: str, p: tuple[float, float], word: Label, beyond: bool, detectable: bool) -> None:
    """G1: estimate, t, adjusted p, both intervals, the rank companion and the verdict of each arm."""
    contrast, inference = _arm(compare_ms(G1_MS), arm)
    main, inner, rank = inference.interval, inference.equivalence, contrast.rank
    assert rank is not None
    (figures,) = (line.partition(" ")[2] for line in G1.splitlines() if line.startswith(f"{arm} "))
    found = [contrast.ratio, inference.t, main.low, main.high, inner.low, inner.high]
    _all_exactly([*found, rank.ratio, rank.low, rank.high], figures)
    assert inference.adjusted_p == pytest.approx(p[0], abs=p[1])
    verdict = decide(contrast, RULES, 0.05)
    assert (verdict.label, verdict.beyond_margin, verdict.detectable) == (word, beyond, detectable)


def test_g2_gate_falls_back() -> None:
    """G2: the noisy 16x1 is flagged, so far from the others that each arm is judged by its own pairs."""
    comparison = compare_ms(g2_ms())
    assert comparison.fit is not None
    _exactly(comparison.fit.ms, "7.10888060657e-05")
    assert [flag.label for flag in comparison.gates if flag.flagged] == ["16x1"]
    _exactly(comparison.gates[5].f, "27.058087")
    contrast, inference = _arm(comparison, "16x1")
    assert (inference.basis, inference.df) == ("own", 5)
    _all_exactly(
        [inference.se, inference.t, inference.adjusted_p, inference.interval.low, inference.interval.high],
        ".007839036 4.6057295 .023240169 1.00625721 1.06819599",
    )
    _exactly(inference.constant, "3.81000470")
    assert decide(contrast, RULES, 0.05).label is Label.SLOWER
    for arm, column in (("4x4", 3), ("2x8", 2)):
        contrast, inference = _arm(comparison, arm)
        logs = np.log(g2_ms())
        paired = stats.ttest_rel(logs[:, column], logs[:, :2].mean(axis=1))
        limits = paired.confidence_interval(1 - 0.05 / 4)
        assert inference.t == pytest.approx(paired.statistic, rel=1e-9)
        assert inference.adjusted_p == pytest.approx(min(1, 4 * paired.pvalue), rel=1e-9)
        assert inference.interval.low == pytest.approx(np.exp(limits.low), rel=1e-9)
        assert inference.interval.high == pytest.approx(np.exp(limits.high), rel=1e-9)


def test_g3_without_a_a() -> None:
    """G3: one reference column changes df, constant, intervals and the verdict."""
    labels = tuple(label for label in LABELS if label != "A")
    comparison = compare_ms(np.delete(G1_MS, 1, axis=1), labels)
    assert comparison.fit is not None
    _exactly(comparison.fit.ms, "1.27704317426e-05")
    assert comparison.fit.df == 20
    contrast, inference = _arm(comparison, "2x8")
    _all_exactly(
        [inference.constant, contrast.ratio, inference.t, inference.adjusted_p],
        "2.65102959 1.00591368 2.8578191 .032424364",
    )
    _all_exactly([inference.interval.low, inference.interval.high], "1.00042674 1.01143072")
    _all_exactly([inference.equivalence.low, inference.equivalence.high], "1.00114369 1.01070640")
    assert decide(contrast, RULES, 0.05).label is Label.SLOWER


@pytest.mark.parametrize(
    ("p", "rho", "df", "printed"),
    [
        (4, 1 / 2, 28, "2.58831766"),
        (4, 1 / 3, 35, "2.59333000"),
        (4, 1 / 3, 55, "2.54775309"),
        (2, 1 / 2, 10, "2.56833888"),
    ],
)
def test_g4_dunnett_constants(p: int, rho: float, df: int, printed: str) -> None:
    """G4: Dunnett's constants for other layouts."""
    _exactly(distributions.dunnett_constant(0.05, p, df, rho), printed)


@pytest.mark.parametrize(
    ("differences", "estimate", "low", "high", "p"),
    [
        ([0.012, -0.003, 0.021, 0.017, 0.008, 0.030], 0.0145, -0.003, 0.030, 0.0625),
        ([0.012, -0.003, 0.021, 0.017, 0.008, 0.030, -0.005, 0.011], 0.01175, 0.0015, 0.021, 0.0390625),
    ],
)
def test_g5_hodges_lehmann(
    differences: list[float], estimate: float, low: float, high: float, p: float
) -> None:
    """G5 and G5b: Hodges-Lehmann estimate, exact interval and exact p."""
    found = rank_estimate(differences)
    assert found is not None
    logs = [math.log(value) for value in (found.ratio, found.low, found.high)]
    assert logs == pytest.approx([estimate, low, high], abs=1e-14)
    assert found.p == p


def test_g6_slope_score() -> None:
    """G6: weights per doubling of rows, the slope of the gap, and the mean gap."""
    sizes = (500, 1000, 2000, 3000)
    weights = [weight * math.log(2) for weight in slope_weights(sizes, "rows a side")]
    _all_exactly(weights, "-.17973893 -.05100830 .07772232 .15302491")
    gaps = [math.log(b / a) for a, b in ((4995, 5131), (19355, 20351), (76602, 79334), (173100, 178213))]
    _exactly(sum(w * g for w, g in zip(weights, gaps, strict=True)), "-.000209689")
    _exactly(sum(gaps) / 4, ".035299008")


@pytest.mark.parametrize(("references", "printed"), [(1, ".76143114"), (2, ".88471589")])
def test_g7_power_without_gate(references: int, printed: str) -> None:
    """G7: the noncentral-t power of the pooled test, which our constant and standard error must give."""
    df = 7 * (4 + references - 1)
    noncentrality = math.log1p(0.01) / (0.006 * math.sqrt((1 + 1 / references) / 8))
    critical = distributions.dunnett_constant(0.05, 4, df, 1 / (1 + references))
    _exactly(float(1 - special.nctdtr(df, noncentrality, critical)), printed)


@pytest.mark.parametrize(("df", "printed"), [(8, "1.741563"), (10, "1.618364")])
def test_g8_pilot_factor(df: int, printed: str) -> None:
    """G8: the factor that makes a pilot's variance safe to plan with."""
    _exactly(pilot_upper(1.0, df), printed)


def test_g1_through_analyse_gives_the_mock_up() -> None:
    """G1 as raw samples gives the table of `vnuma results`: medians, ms and percent that agree."""
    study = study_of(G1_MS, columns_of(), iterations=(1.0,) * 3)
    result = analyse(study.series, study.cells, study.design)
    (primary,) = result.primary
    cells = primary.table[0].cells
    assert [cell.boots for cell in cells] == [12, 6, 6, 6, 6]
    medians = [amount(cell.median or 0, "ms") for cell in cells]
    assert medians == ["76,452", "77,092", "77,962", "78,312", "79,449"]
    differences = [signed_amount(cell.difference or 0, "ms", 76_452) for cell in cells[1:]]
    assert differences == ["+366", "+1,434", "+1,719", "+2,811"]
    assert [item.verdict.label for item in primary.arms] == [Label.EQUIVALENT, *[Label.SLOWER] * 3]
    assert primary.recommended == ("1x16", "2x8")
    assert not isinstance(primary.a_a, NotEvaluated)
