"""When VMs may be changed: weekly windows in a stated time zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from vnuma.words.validation import Strict

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW = re.compile(r"(?P<days>[A-Za-z,\- ]+?)\s+(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d)")
_Moment = TypeVar("_Moment", int, datetime)
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_AHEAD_DAYS = 8
"""A weekly window recurs within this many days."""


class AllowedHours(Strict):
    """When the study may change its VMs."""

    time_zone: str = Field(
        description="Time zone of the windows: an IANA name, such as `Europe/Berlin` or `UTC`."
    )
    windows: tuple[str, ...] = Field(
        min_length=1,
        description=(
            "Such as `Mon-Fri 20:00-06:00` or `Sat,Sun 00:00-24:00`: the days on which a window opens. "
            "If it ends before it starts, it ends on the next day."
        ),
    )
    restore_s: float = Field(
        default=900, gt=0, description="Seconds kept free at a window's end for restoring the VMs."
    )

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"'{value}' is not a time zone: use a name such as Europe/Berlin") from None
        return value

    @field_validator("windows")
    @classmethod
    def _are_windows(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            _parse(text)
        return value

    @property
    def words(self) -> str:
        """As text: `Mon-Fri 20:00-06:00 (Europe/Berlin)`."""
        return f"{'; '.join(self.windows)} ({self.time_zone})"

    @property
    def longest_s(self) -> float | None:
        """Length of the longest window by the clock, adjacent ones merged; None: it never closes."""
        longest = max(end - start for start, end in _merged(self._minutes_of_fortnight()))
        return None if longest >= _WEEK_MINUTES else longest * 60.0

    def _minutes_of_fortnight(self) -> Iterator[tuple[int, int]]:
        """Every window of two weeks, so that one that continues into the next week is complete."""
        for text in self.windows:
            days, start, length = _parse(text)
            for day in days:
                for begin in (day * _DAY_MINUTES + start, day * _DAY_MINUTES + start + _WEEK_MINUTES):
                    yield begin, begin + length

    def closes(self, now: datetime) -> datetime | None:
        """When the window that is open at `now` ends, in the study's zone; None if none is open.

        Adjacent windows count as one. The search ends after a week, so for hours that never close the result
        is over a week ahead and moves on.
        """
        return next((end for start, end in self._merged(now) if start <= now < end), None)

    def opens(self, now: datetime) -> datetime:
        """When the next window after `now` opens, in the study's zone; for an open one, when it did."""
        return next(start for start, end in self._merged(now) if end > now)

    def _merged(self, now: datetime) -> list[tuple[datetime, datetime]]:
        """The windows from yesterday on, in order, adjacent ones merged."""
        zone = ZoneInfo(self.time_zone)
        spans = _merged(self._spans(now.astimezone(zone).date() - timedelta(days=1)))
        return [(start.astimezone(zone), end.astimezone(zone)) for start, end in spans]

    def _spans(self, first: date) -> Iterator[tuple[datetime, datetime]]:
        """In UTC, so that a night with a clock change has its true length."""
        zone = ZoneInfo(self.time_zone)
        for offset in range(_AHEAD_DAYS + 2):
            day = first + timedelta(days=offset)
            for text in self.windows:
                days, start, length = _parse(text)
                if day.weekday() in days:
                    yield _at(day, start, zone), _at(day, start + length, zone)


def _merged(spans: Iterable[tuple[_Moment, _Moment]]) -> list[tuple[_Moment, _Moment]]:
    """Start and end of each in order, adjacent ones merged."""
    merged: list[tuple[_Moment, _Moment]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _at(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """A wall clock time on that day, or on the next one, in UTC."""
    later, minute = divmod(minutes, _DAY_MINUTES)
    clock = datetime.combine(day + timedelta(days=later), time(minute // 60, minute % 60), zone)
    return clock.astimezone(UTC)


def _parse(text: str) -> tuple[frozenset[int], int, int]:
    """Days (0 is Monday), start and length in minutes. Raises ValueError with the correct form."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a window: write it as Mon-Fri 20:00-06:00")
    start, end = _minutes(match["start"], 23), _minutes(match["end"], 24)
    return _days(match["days"]), start, (end - start) % _DAY_MINUTES or _DAY_MINUTES


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        start = _day(first)
        end = _day(last) if dash else start
        found |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return frozenset(found)


def _day(text: str) -> int:
    name = text.strip().capitalize()
    if name not in DAYS:
        raise ValueError(f"'{text.strip()}' is not a day: use {', '.join(DAYS)}")
    return DAYS.index(name)


def _minutes(text: str, latest_hour: int) -> int:
    hour, minute = (int(part) for part in text.split(":"))
    if hour > latest_hour or minute > 59 or hour * 60 + minute > _DAY_MINUTES:
        raise ValueError(f"'{text}' is not a time of day: use 00:00 to 24:00")
    return hour * 60 + minute
