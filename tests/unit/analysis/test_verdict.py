"""The verdict table, row by row, and the checks that feed its first row."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from tests.unit.analysis.data import G1_MS, LABELS, compare_ms, g2_ms, noisy_ms
from vnuma.analysis.checks import AaCheck, ControlCheck, check_a_a, check_control
from vnuma.analysis.compare import Contrast, Inference, Interval
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.outliers import is_rare
from vnuma.analysis.rank import RankEstimate
from vnuma.analysis.records import NotEvaluated, PositiveControl
from vnuma.analysis.verdict import Label, Rules, Verdict, Withheld, decide, rules_for, run_withheld

RULES = Rules(margin=0.01, withheld=None, control_failed=False)


def _contrast(
    estimate: float, half: float, *, boots: int = 8, inner: float | None = None, rank: bool = True
) -> Contrast:
    """An arm with given estimate and half-widths in percent (ln scale)."""
    e, h, n = estimate / 100, half / 100, (inner if inner is not None else half * 0.85) / 100
    inference = Inference(
        "pooled",
        h / 2,
        20,
        e / h * 2,
        0.5,
        2.0,
        h,
        Interval.around(e, h),
        Interval.around(e, n),
        Interval.around(e, n),
    )
    low = math.exp(e - h) if rank else 0.9
    return Contrast(
        "2x8", "2x8", boots, e, inference, RankEstimate(math.exp(e), low, math.exp(e + h), 0.961, 0.1), ()
    )


def _decide(contrast: Contrast, rules: Rules = RULES) -> Verdict:
    return decide(contrast, rules, 0.05)


@pytest.mark.parametrize(
    ("estimate", "half", "word", "beyond", "detectable"),
    [
        (0.1, 0.5, Label.EQUIVALENT, False, False),
        (0.5, 0.45, Label.EQUIVALENT, False, True),
        (-0.5, 0.45, Label.EQUIVALENT, False, True),
        (0.8, 0.5, Label.SLOWER, False, False),
        (3.0, 0.5, Label.SLOWER, True, False),
        (-0.8, 0.5, Label.FASTER, False, False),
        (-3.0, 0.5, Label.FASTER, True, False),
        (0.4, 0.9, Label.UNDECIDED, False, False),
        (2.0, 2.1, Label.UNDECIDED, False, False),
    ],
)
def test_words(estimate: float, half: float, word: Label, beyond: bool, detectable: bool) -> None:
    """Rows 3 to 6: equivalence first, then the direction, else undecided."""
    verdict = _decide(_contrast(estimate, half))
    assert (verdict.label, verdict.beyond_margin, verdict.detectable) == (word, beyond, detectable)


def test_the_band_is_symmetric_in_logarithms() -> None:
    """The band is 1/1.01 to 1.01: 0.9901 is outside on the low side only beyond ln 1.01."""
    edge = 100 * math.log(1.01)
    assert _decide(_contrast(-0.5, 0.6, inner=edge - 0.5 - 1e-9)).label is Label.EQUIVALENT
    assert _decide(_contrast(-0.5, 0.6, inner=edge - 0.5 + 1e-9)).label is Label.UNDECIDED


def test_too_few_boots_keeps_the_estimate_as_provisional() -> None:
    """Row 2: five blocks give no word, however clear the figures are."""
    verdict = _decide(_contrast(9.0, 0.5, boots=5))
    assert (verdict.label, verdict.provisional) == (Label.TOO_FEW, True)
    assert (verdict.boots, verdict.boots_needed, verdict.beyond_margin) == (5, 6, False)
    assert verdict.interval is not None


@pytest.mark.parametrize("reason", [Withheld.FIXED_ORDER, Withheld.A_A_ALARM])
@pytest.mark.parametrize(("estimate", "boots"), [(3, 8), (0, 8), (3, 3)])
def test_row_one_withholds_every_word(reason: Withheld, estimate: float, boots: int) -> None:
    """Row 1 comes before everything, also before too few boots, and keeps estimate and interval."""
    verdict = _decide(_contrast(estimate, 0.5, boots=boots), Rules(0.01, reason, control_failed=False))
    assert (verdict.label, verdict.withheld) == (Label.UNDECIDED, reason)
    assert verdict.interval is not None
    assert not verdict.beyond_margin


@pytest.mark.parametrize(
    ("control_failed", "step", "withheld"),
    [
        (True, None, Withheld.CONTROL_FAILED),  # an instrument that missed a known effect
        (False, 0.01, Withheld.COARSE_CLOCK),  # a clock whose steps are as wide as the band
        (False, 0.0001, None),
    ],
)
def test_what_shows_no_equivalence_withholds_it_alone(
    control_failed: bool, step: float | None, withheld: Withheld | None
) -> None:
    """A difference it does show."""
    rules = Rules(0.01, None, control_failed=control_failed, control_arm="remote")
    close, far = (_contrast(estimate, 0.5) for estimate in (0.1, 3.0))
    if step:
        close, far = (dataclasses.replace(one, step=step) for one in (close, far))
    found = _decide(close, rules)
    assert (found.label, found.withheld) == (Label.UNDECIDED if withheld else Label.EQUIVALENT, withheld)
    assert _decide(far, rules).label is Label.SLOWER


@pytest.mark.parametrize(
    ("estimate", "rank", "supports"), [(3.0, False, False), (3.0, True, True), (0.0, False, None)]
)
def test_rank_dissent_is_noted_only_next_to_a_direction(
    estimate: float, rank: bool, supports: bool | None
) -> None:
    """A rank interval that contains 1 is noted with slower and faster, and never decides."""
    assert _decide(_contrast(estimate, 0.5, rank=rank)).rank_supports is supports


def _a_a(ms: FloatArray) -> AaCheck:
    check = check_a_a(compare_ms(ms))
    assert isinstance(check, AaCheck)
    return check


def test_order_and_a_a_feed_row_one() -> None:
    """Fixed order or an A/A alarm withholds; a note does not."""
    alarmed = G1_MS.copy()
    alarmed[:, 1] *= 1.01
    quiet, loud = _a_a(G1_MS), _a_a(alarmed)
    assert run_withheld("fixed", quiet) is Withheld.FIXED_ORDER
    assert run_withheld("randomised", quiet) is None
    assert (loud.state, run_withheld("randomised", loud)) == ("alarm", Withheld.A_A_ALARM)


@pytest.mark.parametrize(
    ("t", "state"), [(2.0, "no alarm"), (2.2, "note"), (2.7, "note"), (2.9, "alarm"), (-2.9, "alarm")]
)
def test_a_a_thresholds(t: float, state: str) -> None:
    """With 25 df the note begins at |t| = 2.06 (p 0.05) and the alarm at 2.79 (p 0.01)."""
    ms = G1_MS.copy()
    # Moving a whole column leaves the residuals alone, so t can be set exactly.
    ms[:, 1] *= math.exp(t * math.sqrt(2 * 1.30249239249e-05 / 6)) / 1.00223999
    check = _a_a(ms)
    assert check.t == pytest.approx(t, abs=1e-4)
    assert check.state == state


def test_a_a_uses_its_own_error_when_a_reference_column_is_flagged() -> None:
    """A noisy reference column is judged by the pairs themselves, and so is every arm."""
    ms = G1_MS.copy()
    ms[:, 1] = np.exp(np.log(76500) + np.array([0.03, -0.03, 0.02, -0.03, 0.03, -0.02]))
    check = _a_a(ms)
    assert (check.basis, check.df) == ("own", 5)
    assert set(_bases(ms).values()) == {"own"}


def test_a_a_without_a_second_column_is_not_evaluated() -> None:
    """No A/A column, or no reference at all: not evaluated, with the reason."""
    one_column, none = compare_ms(G1_MS[:, 1:], LABELS[1:]), compare_ms(G1_MS[:, 2:], LABELS[2:])
    assert check_a_a(one_column) == NotEvaluated("the reference arm has only one column")
    assert check_a_a(none) == NotEvaluated("the reference arm has no value")


def test_positive_control() -> None:
    """The control passes in the expected direction only; without cells it is not evaluated."""
    contrasts = compare_ms(G1_MS).contrasts
    for expected, passed in (("slower", True), ("faster", False)):
        control = PositiveControl("16x1", expected)  # type: ignore[arg-type]
        assert check_control(control, contrasts) == ControlCheck("16x1", expected, passed)  # type: ignore[arg-type]
    assert isinstance(check_control(None, contrasts), NotEvaluated)
    assert isinstance(check_control(PositiveControl("remote"), contrasts), NotEvaluated)


def test_a_failed_control_keeps_its_own_verdict() -> None:
    """The control arm's own word is not withheld by its failure."""
    contrasts = compare_ms(noisy_ms(8, 6, 0.001)).contrasts
    control = check_control(PositiveControl("2x8"), contrasts)
    rules = rules_for(0.01, None, control)
    found = {c.arm: decide(c, rules, 0.05) for c in contrasts}
    assert found["2x8"].label is Label.EQUIVALENT
    assert found["4x4"].withheld is Withheld.CONTROL_FAILED


def _bases(ms: FloatArray) -> dict[str, str]:
    return {c.arm: c.inference.basis for c in compare_ms(ms).contrasts if c.inference}


def test_a_column_that_varies_more_rests_on_its_own_spread() -> None:
    """Between the 10% and the 1% point of F the flag does not reach the other arms."""
    between = G1_MS**0.85 * g2_ms() ** 0.15
    assert _bases(between) == {"2x8": "pooled", "4x4": "pooled", "8x2": "pooled", "16x1": "own"}


def _with_slow_boots(blocks: int, *slow: int, column: int = 2, factor: float = 1.055) -> Verdict:
    """2x8 is the reference's like but for some boots, its own or one of the reference's."""
    ms = noisy_ms(blocks, 6, 0.0002)
    ms[list(slow), column] *= factor
    (contrast,) = (item for item in compare_ms(ms).contrasts if item.arm == "2x8")
    return _decide(contrast, Rules(0.05, None, control_failed=False))


def test_a_boot_in_another_state_takes_equivalence_away_and_is_reported() -> None:
    """A mean over two states is the figure of no boot: it is shown with that of the boots of one state."""
    ms = noisy_ms(8, 6, 0.0002)
    calm = np.log(ms[:, 2]) - np.log(ms[:, :2]).mean(axis=1)
    verdict = _with_slow_boots(8, 3)

    assert verdict.equivalence_interval is not None
    assert verdict.equivalence_interval.high < 1.05
    assert verdict.label is Label.UNDECIDED
    assert verdict.odd_boots == pytest.approx((1.055,), abs=0.002)
    assert (verdict.reference_odd_boots, verdict.unseen, verdict.other_boots) == ((), None, 7)
    assert verdict.others == pytest.approx(math.exp(np.delete(calm, 3).mean()))


def test_a_boot_of_the_reference_apart_is_reported_as_the_references() -> None:
    """By its own shift and sign, not by the half of it that the pairs show."""
    verdict = _with_slow_boots(8, 3, column=0)

    assert verdict.label is not Label.EQUIVALENT
    assert verdict.odd_boots == ()
    assert verdict.reference_odd_boots == pytest.approx((1.055,), abs=0.002)


@pytest.mark.parametrize(
    ("odd", "boots", "rare"), [(1, 10, True), (1, 9, False), (2, 20, True), (3, 29, False)]
)
def test_a_tenth_of_the_boots_is_rare(odd: int, boots: int, rare: bool) -> None:
    """Exactly a tenth, too."""
    assert is_rare(odd, boots) is rare


def test_one_boot_apart_of_many_leaves_equivalence_and_is_reported() -> None:
    """With heavy tails some boot is odd sooner or later: at most a tenth of them, and it is reported."""
    rare, common = (_with_slow_boots(20, *slow, factor=1.08) for slow in ((3,), (3, 7, 11)))

    assert (rare.label, len(rare.odd_boots)) == (Label.EQUIVALENT, 1)
    assert rare.unseen == pytest.approx(float(stats.beta.ppf(0.95, 2, 19)))
    assert (common.label, len(common.odd_boots)) == (Label.UNDECIDED, 3)


def test_a_boot_apart_does_not_take_a_direction_away() -> None:
    """Inside the band but not one state, the arm is slower if its interval says so."""
    ms = noisy_ms(8, 6, 0.0002)
    ms[:, 2] *= 1.02
    ms[3, 2] *= 1.06
    (contrast,) = (item for item in compare_ms(ms).contrasts if item.arm == "2x8")
    found = [_decide(contrast, Rules(margin, None, control_failed=False)).label for margin in (0.10, 0.05)]

    assert found == [Label.EQUIVALENT, Label.SLOWER]  # 6% lies within the wider band


@pytest.mark.parametrize("boots", [6, 8, 12])
def test_equivalent_states_the_share_of_boots_that_may_be_unseen(boots: int) -> None:
    """The exact upper 95% limit of a share of which 0 of n were seen (Clopper-Pearson, by scipy).

    None where nobody looked: of two runs' gaps, silence would read as if none had been there.
    """
    contrast = _contrast(0.1, 0.5, boots=boots)
    verdict = _decide(dataclasses.replace(contrast, noticeable=math.log(1.03)))

    assert verdict.unseen == pytest.approx(float(stats.beta.ppf(0.95, 1, boots)))
    assert verdict.noticeable == pytest.approx(0.03)
    assert _decide(contrast).unseen is None
