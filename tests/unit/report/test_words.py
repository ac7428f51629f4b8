"""Sentences that the terminal and the page share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.analysis.checks import Drift, Slope
from vnuma.analysis.compare import Interval
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.analysis.wording import limits
from vnuma.report.model.words import drift_words, lead, places, verdict_words
from vnuma.words.plain_text import counted, listed
from vnuma.words.provenance import banner
from vnuma.words.validation import percent_text


@pytest.mark.parametrize(
    ("level", "words"), [(0.95, "95%"), (0.975, "97.5%"), (0.9875, "98.75%"), (0.99, "99%")]
)
def test_a_level_is_written_as_people_do(level: float, words: str) -> None:
    """No more decimals than the level has."""
    assert percent_text(level) == words


@pytest.mark.parametrize(
    ("names", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed_as_a_sentence(names: list[str], words: str) -> None:
    """Commas, and a word before the last."""
    assert listed(names) == words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "It fits the cache: 0.13 MB. Distance cannot show.",
            ("It fits the cache:", "0.13 MB. Distance cannot show."),
        ),
        ("vcsa01:443 is away. On ESXi 6.5: ask again.", ("vcsa01:443 is away.", "On ESXi 6.5: ask again.")),
        ("One sentence.", ("One sentence.", "")),
        ("", ("", "")),
    ],
)
def test_a_finding_is_led_by_what_it_is_about(text: str, parts: tuple[str, str]) -> None:
    """Up to the first colon or full stop that ends a word; the rest is not lost."""
    assert lead(text) == parts


@given(st.text())
def test_a_lead_and_the_rest_are_the_whole_finding(text: str) -> None:
    """Nothing but the space between them goes."""
    assert "".join("".join(lead(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 boots"), (1, "1 boot"), (2, "2 boots"), (1200, "1,200 boots")]
)
def test_nouns_follow_their_number(number: int, words: str) -> None:
    """One boot, two boots."""
    assert counted(number, "boot") == words


def test_the_banner_names_the_scenario_and_is_empty_for_real_machines() -> None:
    """Only figures of the lab have a banner."""
    assert banner("drift") == "SIMULATED (lab, scenario drift): not measured on hardware"
    assert banner(None) == ""


RATIOS = st.floats(0.9, 1.1, allow_nan=False)


@given(st.lists(st.one_of(st.none(), st.tuples(RATIOS, RATIOS)), max_size=6))
def test_different_intervals_of_a_row_never_read_alike_at_one_decimal(
    pairs: list[tuple[float, float] | None],
) -> None:
    """Two intervals that differ are shown with more decimals before they read the same."""
    intervals = [None if pair is None else Interval(min(pair), max(pair)) for pair in pairs]
    shown = places(intervals, 0.01)

    assert len(shown) == len(intervals)
    for one, digits in zip(intervals, shown, strict=True):
        for other, digits_too in zip(intervals, shown, strict=True):
            if one is None or other is None or one == other:
                continue
            if limits(one, digits) == limits(other, digits_too):
                assert digits == digits_too == 2


def test_an_interval_that_touches_the_band_has_more_decimals() -> None:
    """A limit of 0.96% is not shown as 1.0%, the edge of the band."""
    assert places([Interval(1.00000471, 1.00959608), Interval(1.0139, 1.0236), None], 0.01) == [2, 1, 1]


def test_nothing_is_minus_zero() -> None:
    """What rounds to 0 has no direction: neither a withheld estimate nor a drift reads "-0.0%"."""
    interval = Interval(0.98, 1.02)
    held = Verdict(
        Label.UNDECIDED,
        Withheld.FIXED_ORDER,
        0.9999,
        interval,
        interval,
        0.95,
        0.9,
        0.01,
        boots=8,
        boots_needed=6,
    )
    slope = Slope(-1e-6, 1e-5, 6, -0.1, 0.9, alarm=False)

    assert verdict_words(held).endswith("measured +0.0% (-2.0 to 2.0)")
    assert re.findall(r"[+-]0\.0+\b", drift_words(Drift(slope, slope))) == ["+0.00"] * 2
