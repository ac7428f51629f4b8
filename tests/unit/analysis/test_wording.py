"""Verdicts in words, rounded for show only."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.analysis.checks import AaCheck
from vnuma.analysis.compare import Interval
from vnuma.analysis.growth import Growth
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.analysis.wording import (
    a_a_sentence,
    amount,
    decimals,
    growth_sentence,
    headline,
    p_words,
    percent_up,
    sentence,
    signed_amount,
    together,
)

FORBIDDEN = ("significant", "proves", "no difference", "best", "±")


def _verdict(label: Label, estimate: float, low: float, high: float, **more: Any) -> Verdict:
    """A verdict from percents."""
    interval = Interval(1 + low / 100, 1 + high / 100)
    plain = Verdict(
        label=label,
        withheld=None,
        ratio=1 + estimate / 100,
        interval=interval,
        equivalence_interval=interval,
        level=0.95,
        equivalence_level=0.90,
        margin=0.01,
        boots=8,
        boots_needed=6,
    )
    return dataclasses.replace(plain, **more)


@pytest.mark.parametrize(
    ("low", "high", "said"), [(-9.8, -9.2, False), (-11.0, -10.1, True), (10.1, 11.0, True)]
)
def test_at_least_is_true_of_the_percentage_shown(low: float, high: float, said: bool) -> None:
    """9.2% less lies beyond a band of 10%, which ends at 1/1.1, and is not "at least 10%"."""
    word = Label.SLOWER if low > 0 else Label.FASTER
    verdict = _verdict(word, (low + high) / 2, low, high, beyond_margin=True, margin=0.10)

    assert sentence(verdict).endswith("by at least 10%") is said


HELD = "Verdict withheld: "
OPEN = "undecided: +0.4% (-0.2 to 1.0)"
ODD = {"boots": 8, "odd_boots": (1.11, 1.092)}


@pytest.mark.parametrize(
    ("verdict", "short", "more"),
    [
        (
            _verdict(Label.EQUIVALENT, 0.4789, 0.0594, 0.9002, detectable=True),
            "equivalent within 1%",
            ": +0.5% (90%: 0.1 to 0.9); detectable, too small to matter",
        ),
        # Rounded up: a promise may only err on the safe side. The smallest state that would show is named.
        (
            _verdict(Label.EQUIVALENT, 0.1, -0.4, 0.6, unseen=0.3123, noticeable=0.0312),
            "equivalent within 1%",
            ": +0.1% (90%: -0.4 to 0.6); its 8 boots do not exclude that up to 32% are in a state 3.2% or "
            "more away, unseen",
        ),
        (
            _verdict(Label.TOO_FEW, 2.04, 1.0, 3.0, boots=4),
            "too few boots (4 of 6): +2% so far, provisional",
            "",
        ),
        (
            _verdict(Label.TOO_FEW, -1.27, 1.0, 3.0, boots=4),
            "too few boots (4 of 6): -1.3% so far, provisional",
            "",
        ),
        (_verdict(Label.UNDECIDED, 3.0, 2.0, 4.0, withheld=Withheld.FIXED_ORDER), f"{HELD}fixed order", ""),
        (
            _verdict(Label.UNDECIDED, 3.0, 2.0, 4.0, withheld=Withheld.A_A_ALARM),
            f"{HELD}the reference arm differs from itself (A/A check)",
            "",
        ),
        (
            _verdict(Label.UNDECIDED, 3.0, 2.0, 4.0, withheld=Withheld.CONTROL_FAILED),
            f"{HELD}the positive control failed",
            "",
        ),
        (
            _verdict(Label.SLOWER, 1.5, 0.6, 2.4, rank_supports=False),
            "slower by 1.5% (0.6 to 2.4)",
            "; not supported by the rank method",
        ),
        (
            _verdict(Label.SLOWER, 0.4, 0.2, 0.6, **ODD),
            "slower by 0.4% (0.2 to 0.6)",
            "; 2 of 8 boots stand apart (+11.0%, +9.2%)",
        ),
        (
            _verdict(Label.UNDECIDED, 0.4, -0.2, 1.0, odd_boots=(1.055,), other_boots=7, others=1.0003),
            f"{OPEN}; 1 of 8 boots stands apart (+5.5%), the 7 other blocks give +0.0%",
            "",
        ),
        (
            _verdict(Label.SLOWER, 0.4, 0.2, 0.6, reference_odd_boots=(1.11,)),
            "slower by 0.4% (0.2 to 0.6)",
            "; 1 boot of the reference stands apart (+11.0%)",
        ),
    ],
)
def test_a_verdict_s_headline_and_its_whole_sentence(verdict: Verdict, short: str, more: str) -> None:
    """The band and in full the 90% interval; how many boots of how many; withheld words give way to why."""
    assert headline(verdict) == short
    assert sentence(verdict) == short + more


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ((7, 12), "; about 12 blocks would probably distinguish a difference of 1% from none"),
        ((None, 12), "; about 12 blocks would probably distinguish a difference of 1% from none for 4x4"),
        ((None, None), ""),
    ],
)
def test_undecided_arms_together_say_once_what_would_decide(
    needed: tuple[int | None, int | None], said: str
) -> None:
    """Each with its own estimate and interval; the largest number of blocks, and for whom it holds."""
    one = ("2x8", _verdict(Label.UNDECIDED, 0.3, -0.6, 1.2, blocks_needed=needed[0]))
    other = ("4x4", _verdict(Label.UNDECIDED, 0.6, -0.1, 1.3, blocks_needed=needed[1]))

    both = "2x8 (+0.3%, -0.6 to 1.2) and 4x4 (+0.6%, -0.1 to 1.3) are undecided"
    assert together([one, other]) == both + said


@pytest.mark.parametrize(("boots", "of"), [((2, 2), "2 of 6"), ((2, 4), "2 to 4 of 6")])
def test_arms_with_too_few_boots_share_one_sentence(boots: tuple[int, int], of: str) -> None:
    """How many each has of those needed, and what they give so far."""
    pairs = zip(("2x8", "4x4"), (0.2, 2.04), boots, strict=True)
    arms = [(name, _verdict(Label.TOO_FEW, at, -1.0, 3.0, boots=n)) for name, at, n in pairs]
    said = f"Too few boots for a verdict ({of} per arm): so far 2x8 +0.2%, 4x4 +2%, provisional"
    assert together(arms) == said


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [
        (0.00047, 0.9596, 2),
        (0.04, 2.0, 2),
        (-0.04, 2.0, 2),
        (-1.04, 0.5, 2),
        (0.1, 1.04, 2),
        (0.1, 0.96, 2),
        (-0.3, 1.12, 1),
        (3.18, 4.17, 1),
        (0.0, 1.0, 1),
    ],
)
def test_a_decimal_more_where_rounding_would_mislead(low: float, high: float, places: int) -> None:
    """Two decimals when one would put a limit on or across 0 or the band."""
    assert decimals([Interval(1 + low / 100, 1 + high / 100)]) == places


def test_a_decimal_more_where_intervals_would_read_alike() -> None:
    """Two different intervals must not print the same; equal ones may."""
    one, other = Interval(1.0312, 1.0417), Interval(1.0314, 1.0421)
    assert decimals([one, other]) == 2
    assert decimals([one, one]) == 1


@given(
    st.sampled_from([Label.SLOWER, Label.FASTER, Label.UNDECIDED, Label.EQUIVALENT, Label.TOO_FEW]),
    st.floats(-20, 20),
    st.floats(0.001, 5),
)
def test_no_forbidden_word_and_no_crossing(word: Label, estimate: float, half: float) -> None:
    """No sentence says more than it may, and a limit above 0 is never printed as negative."""
    text = sentence(_verdict(word, estimate, estimate - half, estimate + half))
    assert not any(forbidden in text for forbidden in FORBIDDEN)
    if word is Label.UNDECIDED and estimate - half > 0:
        assert "(-" not in text


def test_a_a_alarm_shows_small_p_in_full() -> None:
    """A p value below 0.01 is not rounded to the threshold."""
    check = AaCheck(1.012, Interval(1.004, 1.02), "pooled", 0.002, 25, 3.1, 0.0047, 0.0043, "alarm")
    assert a_a_sentence(check, "1x16").endswith("p = 0.0047, alarm")


@pytest.mark.parametrize(
    ("growth", "text"),
    [
        (
            Growth("16x1", -0.021, -0.08, 0.05, 0.8, "undecided", None),
            "whether the gap changes with size is undecided: "
            "-0.02 points per doubling of rows (-0.08 to 0.05)",
        ),
        (
            Growth("16x1", 0.3, 0.1, 0.5, 0.01, "falls behind", None),
            "falls behind as size grows: +0.30 points per doubling of rows (0.10 to 0.50)",
        ),
        (Growth("16x1", None, None, None, None, "too few boots", None), "change with size: not evaluated"),
        (
            Growth("16x1", 0.3, None, None, None, "too few boots", None),
            "change with size: +0.30 points per doubling of rows so far, provisional",
        ),
        (
            Growth("16x1", 0.3, 0.1, 0.5, 0.01, "too few boots", None),
            "change with size: +0.30 points per doubling of rows (0.10 to 0.50), provisional",
        ),
        (
            Growth("4x4", -0.001, -0.3, 0.2, 0.9, "undecided", None),
            (
                "whether the gap changes with size is undecided: +0.00 points per doubling of rows "
                "(-0.30 to 0.20)"
            ),
        ),
        (
            Growth("16x1", 0.3, 0.1, 0.5, 0.01, "undecided", Withheld.FIXED_ORDER),
            (
                "change with size: +0.30 points per doubling of rows (0.10 to 0.50); verdict "
                "withheld: fixed order"
            ),
        ),
    ],
)
def test_growth_sentence(growth: Growth, text: str) -> None:
    """The change with size, in points per doubling, and never a word that is withheld."""
    assert growth_sentence(growth) == text


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0496, "p = 0.0496"),
        (0.0504, "p = 0.050"),
        (0.00996, "p = 0.00996"),
        (0.29, "p = 0.29"),
        (0.9, "p = 0.90"),
        (0.034, "p = 0.034"),
        (0.0004, "p < 0.001"),
    ],
)
def test_a_p_is_not_rounded_across_the_level_it_is_compared_with(p: float, words: str) -> None:
    """A note at p below 0.05 does not read "p = 0.05"."""
    assert p_words(p) == words


def test_numbers() -> None:
    """Long times are whole, other figures have four digits; what a design can detect rounds up."""
    assert [amount(x, "ms") for x in (79448.5, 543.2, 52.31, 7.0, 0.2)] == [
        "79,449",
        "543",
        "52.31",
        "7",
        "0.2000",
    ]
    assert [amount(x, "calls/s") for x in (79448.5, 543.21, 52.314)] == ["79,449", "543.2", "52.31"]
    assert (percent_up(0.00741), percent_up(0.008)) == ("0.8%", "0.8%")


def test_a_difference_is_as_fine_as_the_figure_next_to_it() -> None:
    """What is added to a whole figure is whole, unless it would read 0 and is not."""
    assert signed_amount(1433.6, "ms", 76_452.0) == "+1,434"
    assert signed_amount(-236.2, "ms", 76_452.0) == "-236"
    assert signed_amount(-0.3, "ms", 76_452.0) == "-0.3"
    assert signed_amount(0.0, "ms", 76_452.0) == "+0"
    assert signed_amount(0.0351, "calls/s", 52.31) == "+0.04"
