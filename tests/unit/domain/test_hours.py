"""Windows of the week: when they are open, and when they close."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vnuma.domain.study.study import DAYS, AllowedHours

NIGHTS = AllowedHours(time_zone="Europe/Berlin", windows=("Mon-Fri 20:00-06:00", "Sat,Sun 00:00-24:00"))


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "closes"),
    [
        ("2026-11-18T18:59:59", None),  # 20:00 in Berlin is 19:00 UTC in winter
        ("2026-11-18T19:00:00", "2026-11-19T05:00:00"),
        ("2026-11-19T05:00:00", None),
        ("2026-11-20T22:00:00", "2026-11-22T23:00:00"),  # Friday night and the weekend are one window
        ("2026-10-22T18:00:00", "2026-10-23T04:00:00"),
        ("2026-10-23T18:00:00", "2026-10-25T23:00:00"),  # the clocks change on Sunday
    ],
)
def test_a_window_is_open_from_its_start_until_before_its_end(now: str, closes: str | None) -> None:
    """By the study's own clock, whose nights in autumn have an hour more."""
    assert NIGHTS.closes(at(now)) == (closes and at(closes))


def test_the_next_opening_is_reported_in_the_studys_zone() -> None:
    """A reader knows the clock that the study was written by."""
    opens = NIGHTS.opens(at("2026-11-19T10:00:00"))
    assert opens == at("2026-11-19T19:00:00")
    assert f"{opens:%H:%M %Z}" == "20:00 CET"


@given(
    now=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    day=st.sampled_from(DAYS),
    start=st.integers(0, 23),
    end=st.integers(0, 24),
)
def test_what_is_open_closes_later_and_what_is_not_opens_later(
    now: datetime, day: str, start: int, end: int
) -> None:
    """Whatever the window: it has opened before it closes, within a week."""
    hours = AllowedHours(time_zone="America/New_York", windows=(f"{day} {start:02}:00-{end:02}:00",))
    closes = hours.closes(now)
    if closes is None:
        assert now < hours.opens(now) <= now + timedelta(days=8)
    else:
        assert hours.opens(now) <= now < closes <= now + timedelta(days=2)


@pytest.mark.parametrize(
    ("windows", "hours"),
    [
        (("Mon 20:00-06:00",), 10),
        (("Mon 20:00-06:00", "Tue 06:00-07:30"), 11.5),
        (("Sun 20:00-24:00", "Mon 00:00-01:00"), 5),
        (("Mon,Wed 08:00-09:00", "Fri 08:00-10:00"), 2),
        (("Mon-Sun 00:00-24:00",), None),
        (("Mon-Fri 20:00-20:00", "Fri-Mon 20:00-20:00"), None),
    ],
)
def test_the_longest_window_of_the_week(windows: tuple[str, ...], hours: float | None) -> None:
    """Windows that meet are one, over the week's end too; hours that cover the week never close."""
    longest = AllowedHours(time_zone="UTC", windows=windows).longest_s

    assert longest == (None if hours is None else hours * 3600)


@pytest.mark.parametrize(
    ("zone", "window", "words"),
    [
        ("Europe/Berlim", "Mon 20:00-06:00", "not a time zone"),
        ("UTC", "Mon 20-06", "write it as Mon-Fri 20:00-06:00"),
        ("UTC", "Moo 20:00-06:00", "'Moo' is not a day"),
        ("UTC", "Mon 25:00-06:00", "not a time of day"),
        ("UTC", "Mon 20:00-24:30", "not a time of day"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(zone: str, window: str, words: str) -> None:
    """Before anything is touched."""
    with pytest.raises(ValidationError, match=words):
        AllowedHours(time_zone=zone, windows=(window,))
