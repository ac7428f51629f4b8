"""Figures as text: rounded here, for display only.

Percent to 0.1; one decimal more where rounding would move a limit onto or across 0 or the equivalence band,
or make two different intervals look the same. A sign only when negative, except for estimates that may go
either way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from vnuma.analysis.compare import Interval
from vnuma.analysis.instrument_checks import AA_ALARM, AA_NOTE

MOST_PLACES = 5


def percent(ratio: float) -> float:
    """A ratio as the difference from 1 in percent."""
    return (ratio - 1) * 100


def p_words(p: float) -> str:
    """As in "p = 0.29": two digits, more where they would hide on which side of a deciding level it is."""
    digits = 2
    while any((float(f"{p:.{digits}g}") < level) != (p < level) for level in (AA_ALARM, AA_NOTE)):
        digits += 1
    return "p < 0.001" if p < 0.001 else f"p = {p:#.{digits}g}"


def signed(ratio: float, places: int = 1) -> str:
    """A difference that may go either way: "+0.4%"."""
    # Adding zero turns a rounded -0.0 into 0.0, so that nothing reads "-0.0%".
    return f"{round(percent(ratio), places) + 0.0:+.{places}f}%"


def limits(interval: Interval, places: int) -> str:
    """Limits without unit: "-0.3 to 1.1"."""
    low, high = (round(percent(limit), places) + 0.0 for limit in (interval.low, interval.high))
    return f"{low:.{places}f} to {high:.{places}f}"


def amount(value: float, unit: str) -> str:
    """A measured figure without its unit: "79,449", "52.31"; halves are rounded up, as a reader expects."""
    return f"{_half_up(value, figure_decimals(value, unit)):,.{figure_decimals(value, unit)}f}"


def signed_amount(value: float, unit: str, next_to: float) -> str:
    """A difference with the decimals of the figure next to it, more rather than showing 0: "+1,434"."""
    places = figure_decimals(next_to, unit)
    places = next((more for more in range(places, MOST_PLACES) if _half_up(value, more)), places)
    return f"{_half_up(value, places) + 0.0:+,.{places}f}"


def figure_decimals(value: float, unit: str) -> int:
    """Decimals that show four digits; none for whole numbers, nor for 100 ms and more."""
    size = abs(value)
    if size == int(size) or size >= 1000 or (unit == "ms" and size >= 100):
        return 0
    return min(6, 3 - math.floor(math.log10(size)))


def _half_up(value: float, places: int) -> float:
    scale = 10.0**places
    return math.floor(value * scale + 0.5) / scale


def percent_up(share: float) -> str:
    """What a design can detect, rounded up to 0.1, since a promise must err on the safe side."""
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f}%"


def percent_whole(share: float) -> str:
    """A share in whole percent, rounded up."""
    return f"{math.ceil(share * 100)}%"


def decimals(intervals: Iterable[Interval], margin: float = 0.01) -> int:
    """1, or 2 if one decimal would misplace a limit or make two of the intervals look the same."""
    shown = list(intervals)
    if any(_misplaced(limit, margin) for interval in shown for limit in (interval.low, interval.high)):
        return 2
    distinct = {(interval.low, interval.high) for interval in shown}
    return 1 if len({limits(Interval(*pair), 1) for pair in distinct}) == len(distinct) else 2


def _misplaced(limit: float, margin: float) -> bool:
    """Whether rounding to 0.1% moves the limit onto, or across, 0 or the band."""
    exact = round(percent(limit), 9)  # 1.01 is the edge itself, not 0.9999999999999 percent
    rounded = round(exact, 1)
    edges = (-100 * margin, 0.0, 100 * margin)
    return any((exact > edge) != (rounded > edge) or (exact < edge) != (rounded < edge) for edge in edges)
