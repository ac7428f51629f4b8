"""Verdicts and figures as text: rounded here, for display only.

Percent to 0.1; one decimal more where rounding would move a limit onto or across 0 or the equivalence band,
or make two different intervals look the same. A sign only when negative, except for estimates that may go
either way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from vnuma.analysis.checks import AA_ALARM, AA_NOTE, AaCheck
from vnuma.analysis.compare import Interval
from vnuma.analysis.growth import Growth
from vnuma.analysis.planning import Allocation, Plans
from vnuma.analysis.variance import Noise
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.domain.workloads.metric import Replicate
from vnuma.words.plain_text import counted, duration, listed, plural

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


_WITHHELD = {
    Withheld.FIXED_ORDER: "Verdict withheld: fixed order",
    Withheld.NOT_ENDED: "Verdict withheld: the run is not at its declared end",
    Withheld.A_A_ALARM: "Verdict withheld: the reference arm differs from itself (A/A check)",
    Withheld.CONTROL_FAILED: "Verdict withheld: the positive control failed",
    Withheld.SIZES_OPPOSED: "Verdict withheld: sizes have opposite verdicts",
    Withheld.COARSE_CLOCK: "Verdict withheld: the figures' steps are unknown or too coarse for equivalence",
}


LEFT_OUT = "not measured: excluded by the plan"


def headline(verdict: Verdict) -> str:
    """The verdict in its shortest accurate form, as in "slower by 3.7% (3.2 to 4.2)"."""
    if verdict.left_out:
        return LEFT_OUT
    if verdict.withheld:
        return _WITHHELD[verdict.withheld]
    if verdict.label is Label.TOO_FEW:
        return _too_few(verdict)
    if verdict.label is Label.EQUIVALENT:
        return f"equivalent within {_margin(verdict)}"
    if verdict.label is Label.UNDECIDED:
        return _undecided(verdict)
    return _directed(verdict)


def sentence(verdict: Verdict) -> str:
    """The headline with its qualifications: band, detectability, the rank method's dissent."""
    text = headline(verdict)
    if verdict.label is Label.EQUIVALENT and verdict.ratio is not None and verdict.equivalence_interval:
        inner = verdict.equivalence_interval
        places = decimals([inner], verdict.margin)
        level = f"{verdict.equivalence_level * 100:.4g}%"
        text += f": {signed(verdict.ratio, places)} ({level}: {limits(inner, places)})"
        if verdict.detectable:
            text += "; detectable, too small to matter"
        text += _states(verdict)
    if verdict.beyond_margin and _at_least_the_margin(verdict):
        text += f", by at least {_margin(verdict)}"
    if odd_boots_words(verdict) and verdict.label in (Label.SLOWER, Label.FASTER):
        text += f"; {odd_boots_words(verdict)}"
    if verdict.rank_supports is False:
        text += "; not supported by the rank method"
    if verdict.look and verdict.label in (Label.SLOWER, Label.FASTER, Label.EQUIVALENT):
        text += f"; decided after block {verdict.look}"
    return text


def _at_least_the_margin(verdict: Verdict) -> bool:
    """Downwards the band ends at 1/(1 + margin): 9.1% below, not 10%, for a margin of 10%."""
    assert verdict.interval is not None
    nearest = min(abs(percent(verdict.interval.low)), abs(percent(verdict.interval.high)))
    return nearest >= verdict.margin * 100


def together(arms: Sequence[tuple[str, Verdict]]) -> str:
    """Arms that share a verdict, as in "2x8 and 4x4 are equivalent within 1%"; figures are each arm's own."""
    (first, verdict), *others = arms
    if verdict.label is Label.EQUIVALENT:
        return f"{listed([name for name, _ in arms])} {'are' if others else 'is'} {headline(verdict)}"
    if verdict.label is Label.UNDECIDED:
        return _undecided_together(arms)
    if verdict.label is Label.TOO_FEW:
        return _too_few_together(arms)
    parts = [f"{name} {headline(other).removeprefix(verdict.label).strip()}" for name, other in others]
    return listed([f"{first} is {headline(verdict)}", *parts])


def a_a_sentence(check: AaCheck, reference: str) -> str:
    """The A/A check, as in "1x16 against itself +0.2% (-0.2 to 0.7), p = 0.29, no alarm"."""
    places = decimals([check.interval])
    shown = f"{signed(check.ratio, places)} ({limits(check.interval, places)})"
    return f"{reference} against itself {shown}, {p_words(check.p)}, {check.state}"


def growth_sentence(growth: Growth) -> str:
    """Whether the gap changes with size, in percentage points per doubling of the work."""
    doubling = f"points per doubling of {growth.doubled}"
    if growth.points is None:
        return "change with size: not evaluated"
    if growth.low is None or growth.high is None:
        return f"change with size: {_two_places(growth.points):+.2f} {doubling} so far, provisional"
    low, high = _two_places(growth.low), _two_places(growth.high)
    text = f"{_two_places(growth.points):+.2f} {doubling} ({low:.2f} to {high:.2f})"
    if growth.withheld:
        return f"change with size: {text}; verdict withheld: {growth.withheld}"
    if growth.trend == "too few boots":
        return f"change with size: {text}, provisional"
    if growth.trend == "undecided":
        return f"whether the gap changes with size is undecided: {text}"
    return f"{growth.trend} as size grows: {text}"


def _two_places(points: float) -> float:
    """Rounded, and never "-0.00"."""
    return round(points, 2) + 0.0


def split_sentence(noise: Noise, replicate: Replicate) -> str:
    """Whether more boots or more iterations would narrow the intervals, as far as the run shows."""
    many = plural(replicate)
    title = f"{many.capitalize()} or iterations:"
    if noise.cell_sd is None:
        return f"{title} not evaluated, too few cells to estimate an error."
    if noise.within_sd is None or noise.boot_share is None:
        alike = f"no {replicate} has two iterations that differ" if noise.cell_sd else "cells do not differ"
        return f"{title} not evaluated, {alike}."
    within = f"of an iteration within its {replicate} {noise.within_sd * 100:.2f}%"
    if not noise.boot_share:
        return f"{title} SD between {many} not detectable, {within}: more of either narrows the intervals."
    gain = 1 - math.sqrt(noise.boot_share)
    return (
        f"{title} SD between {many} {(noise.boot_sd or 0.0) * 100:.2f}%, {within}. The first is "
        f"{noise.boot_share * 100:.0f}% of a cell's variance: further iterations would narrow intervals by "
        f"{math.ceil(gain * 100)}% at most, twice the blocks by about 29%."
    )


def plans_sentence(plans: Plans, replicate: Replicate, own_iterations: int | None = None) -> str:
    """The cheapest allocation for the wanted width, and the cost with `own_iterations`."""
    width = f"95% intervals of {plans.width * 100:g}% to each side"
    if not plans.choices:
        return f"{width} would need more than 200 blocks, however many iterations."
    best, *others = plans.choices
    text = (
        f"The cheapest way to {width} (80% likely): {counted(best.blocks, 'block')} of {best.iterations} "
        f"iterations a {replicate}, {_effort(best, replicate)}"
    )
    told = [one for one in others if own_iterations in (None, one.iterations)]
    more = (
        f"with {one.iterations} iterations, {counted(one.blocks, 'block')}, {_effort(one, replicate)}"
        for one in told
    )
    return "; ".join([text, *more]) + "."


def _effort(one: Allocation, replicate: Replicate) -> str:
    return f"{counted(one.boots, replicate)} in {duration(one.hours * 3600)}"


def _margin(verdict: Verdict) -> str:
    return f"{verdict.margin * 100:g}%"


_LARGE = 100
"""Percent from which a limit is shown without decimals."""


def _directed(verdict: Verdict) -> str:
    assert verdict.ratio is not None
    assert verdict.interval is not None
    places = decimals([verdict.interval], verdict.margin)
    size, low, high = percent(verdict.ratio), percent(verdict.interval.low), percent(verdict.interval.high)
    if size < 0:
        size, low, high = -size, -high, -low
    while places < MOST_PLACES and not round(low, places):
        places += 1  # a direction is not shown with a limit of 0
    places = 0 if abs(low) >= _LARGE else places
    return f"{verdict.label} by {size:,.{places}f}% ({low:,.{places}f} to {high:,.{places}f})"


def _undecided(verdict: Verdict) -> str:
    assert verdict.ratio is not None
    assert verdict.interval is not None
    places = decimals([verdict.interval], verdict.margin)
    text = f"undecided: {signed(verdict.ratio, places)} ({limits(verdict.interval, places)})"
    return f"{text}; {odd_boots_words(verdict)}" if odd_boots_words(verdict) else text


def _states(verdict: Verdict) -> str:
    """What an equivalence may hide: boots in another state, whether some were seen or none."""
    odd = odd_boots_words(verdict)
    text = f"; {odd}" if odd else ""
    if verdict.unseen is None or verdict.noticeable is None:
        return text
    share, boots = percent_whole(verdict.unseen), plural(verdict.replicate)
    far = f"{percent_up(verdict.noticeable)} or more away{'' if verdict.odd_boots else ', unseen'}"
    return f"{text}; its {verdict.boots} {boots} do not exclude that up to {share} are in a state {far}"


def odd_boots_words(verdict: Verdict) -> str:
    """As in "1 of 8 boots stands apart (+11.0%), the 7 other blocks give +0.1%"; empty without odd boots."""
    said = []
    if verdict.odd_boots:
        of = f"{len(verdict.odd_boots)} of {counted(verdict.boots, verdict.replicate)}"
        said.append(f"{of} {_stand(verdict.odd_boots)}")
    if verdict.reference_odd_boots:
        of = f"{counted(len(verdict.reference_odd_boots), verdict.replicate)} of the reference"
        said.append(f"{of} {_stand(verdict.reference_odd_boots)}")
    if said and verdict.others is not None:
        one = verdict.other_boots == 1
        which = "the other block gives" if one else f"the {verdict.other_boots} other blocks give"
        said.append(f"{which} {signed(verdict.others)}")
    return ", ".join(said)


def _stand(odd: Sequence[float]) -> str:
    return f"stand{'s' * (len(odd) == 1)} apart ({', '.join(map(signed, odd))})"


def _undecided_together(arms: Sequence[tuple[str, Verdict]]) -> str:
    """Each arm with its figures; the blocks needed only once, for the arm that needs most."""
    told = listed([f"{name} ({_undecided_figures(one)})" for name, one in arms])
    text = f"{told} {'is' if len(arms) == 1 else 'are'} undecided"
    needed = {name: one.blocks_needed for name, one in arms if one.blocks_needed}
    if not needed:
        return text
    effect = f"a difference of {_margin(arms[0][1])} from none"
    which = "" if len(needed) == len(arms) else f" for {listed(list(needed))}"
    return f"{text}; about {max(needed.values())} blocks would probably distinguish {effect}{which}"


def _undecided_figures(verdict: Verdict) -> str:
    """As in "+0.3%, -0.6 to 1.2"."""
    assert verdict.ratio is not None
    assert verdict.interval is not None
    places = decimals([verdict.interval], verdict.margin)
    text = f"{signed(verdict.ratio, places)}, {limits(verdict.interval, places)}"
    return "; ".join(part for part in (text, odd_boots_words(verdict)) if part)


def _too_few_together(arms: Sequence[tuple[str, Verdict]]) -> str:
    """One clause for all arms with too few boots, each with its estimate."""
    _, first = arms[0]
    boots = sorted({verdict.boots for _, verdict in arms})
    seen = " to ".join(map(str, dict.fromkeys((boots[0], boots[-1]))))
    told = ", ".join(f"{name} {_provisional(verdict)}" for name, verdict in arms)
    many = plural(first.replicate)
    return (
        f"Too few {many} for a verdict ({seen} of {first.boots_needed} per arm): so far {told}, provisional"
    )


def _provisional(verdict: Verdict) -> str:
    """Whole percents without decimals, since a provisional figure should not look precise."""
    assert verdict.ratio is not None
    return signed(verdict.ratio).replace(".0%", "%")


def too_few(verdict: Verdict) -> str:
    """How many boots a verdict needs: "too few boots (4 of 6)"."""
    return f"too few {plural(verdict.replicate)} ({verdict.boots} of {verdict.boots_needed})"


def _too_few(verdict: Verdict) -> str:
    text = too_few(verdict)
    if verdict.ratio is None:
        return text
    return f"{text}: {_provisional(verdict)} so far, provisional"
