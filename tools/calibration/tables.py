"""The results of a calibration as tables of docs/reference/calibration.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from tools.calibration.error_rates import EFFECTS, Rate, Rates
from tools.calibration.promised_power import CAPS
from tools.calibration.targets import Calibration, Case, Target, targets, targets_of
from vnuma.report.model.grid import GridTable

_BLOCKS = (6, 8, 12)

_TARGETS = (
    "Targets, %, at 6 blocks or more; bounds are widened by two Monte Carlo errors, by more where a target "
    "has many cases"
)

_REFERENCE = {
    "normal": ((4.4, 4.5, 4.6), (4.5, 4.4, 4.5), (61, 79, 96)),
    "2% slow iterations": ((4.3, 4.3, 4.2), (4.1, 4.2, 4.2), (58, 74, 87)),
    "20% slow boots": ((4.4, 4.6, 4.6), (4.2, 4.1, 4.5), (9, 14, 27)),
    "heavy tails": ((3.5, 3.4, 3.8), (3.3, 3.0, 3.2), (70, 84, 95)),
    "skewed": ((3.8, 4.0, 4.1), (3.4, 3.6, 3.6)),
    "drift 3.6%, random order": ((4.7, 4.6, 4.6), (4.6, 4.7, 4.6)),
    "drift 10%, random order": ((4.7, 4.5, 4.7), (4.7, 4.3, 4.8)),
    "wandering host": ((4.6, 4.7, 4.6), (4.5, 4.5, 4.5)),
    "one arm's SD x 2": ((3.3, 3.0, 2.9), (4.1, 3.5, 2.9), (43, 60, 81)),
    "one arm's SD x 3": ((2.1, 1.8, 1.7), (2.4, 1.7, 1.5)),
    "reference's SD x 2": ((6.4, 5.8, 5.3), (5.7, 5.0, 4.0)),
    "drift 3.6%, fixed order": ((16.1, 13.3, 11.1), (20.9, 17.0, 13.6)),
}
"""The rule written by others: percent at _BLOCKS of errors per comparison, for some arm, power for 1%.

20,000 studies of an implementation of its own; it simulated no other truths.
"""
_PER_COMPARISON, _FAMILY, _POWER = range(3)

_Column = Callable[[Sequence[Rates]], str]


def tables(found: Calibration) -> Iterator[GridTable]:
    """All tables; the targets last."""
    yield from _by_truth(found)
    rows = [
        (f"SD known, B = {item.blocks}, {item.effect * 100:.2f}%", *rate_texts(item.power))
        for item in found.promises
    ]
    rows.append(("SD from 3 blocks: plans that reach 80% for 1%", *rate_texts(found.pilots)))
    yield GridTable("Power where 80% is promised, %", ("promise", "found", "± (MC)"), tuple(rows))
    stopping = tuple(
        (
            f"{item.truth.name}, {item.target * 100:g}%, from B = {item.first}",
            *(f"{rate.share * 100:.1f}" for rate in item.family),
            f"{max(rate.error for rate in item.family) * 100:.2f}",
            f"{item.mean_blocks:.1f}",
        )
        for item in found.stopping
    )
    headings = ("truth, half-width", *(f"cap {cap}" for cap in CAPS), "± (MC)", "mean blocks, cap 24")
    yield GridTable("Family-wise error when stopping on precision, %", headings, stopping)
    yield _targets_table(targets(found), _TARGETS)


def origin(found: Calibration) -> str:
    """What was simulated, as a paragraph."""
    return (
        f"{found.studies:,} simulated studies for each line and number of blocks B, seed {found.seed}; "
        "4 arms, A/A but where the reference is noisy, SD 0.5% between and 0.5% within boots, 3 iterations. "
        "The same command gives the same figures. Reference: another implementation of the same rule, "
        "20,000 studies."
    )


def _by_truth(found: Calibration) -> Iterator[GridTable]:
    """The tables with a row for each truth."""
    at = "B = " + "/".join(map(str, found.blocks))
    family: dict[str, _Column] = {
        "found": _each(lambda item: item.family.share),
        "± (MC)": _largest_error(lambda item: item.family),
        "reference": _reference(_FAMILY),
    }
    coverage: dict[str, _Column] = {
        "mean of arms": _each(lambda item: 1 - item.per_comparison.share),
        "reference": _reference(_PER_COMPARISON, minus_from=100),
        "worst arm": _each(lambda item: 1 - item.worst_arm.share),
        "± (MC)": _largest_error(lambda item: item.worst_arm),
        "rank method": _each(lambda item: None if item.rank_error is None else 1 - item.rank_error.share),
    }
    power: dict[str, _Column] = {
        **{f"{effect * 100:g}% slower": _power(number) for number, effect in enumerate(EFFECTS)},
        "reference, 1%": _reference(_POWER, places=0),
        "± (MC)": _largest_error(lambda item: item.power[1]),
    }
    words: dict[str, _Column] = {
        "false direction": _each(lambda item: item.false_word.share),
        "false equiv.": _each(lambda item: item.false_equivalent.share),
        "true equiv.": _each(lambda item: item.called_equivalent.share, 0),
        "A/A alarm": _each(lambda item: item.a_a_alarm.share if item.a_a_alarm else None),
        "withheld": _each(lambda item: item.withheld.share, 0),
    }
    foil: dict[str, _Column] = {
        "false, per comparison": lambda rates: f"{rates[0].paper[0] * 100:.1f}",
        "false, some arm": lambda rates: f"{rates[0].paper[1] * 100:.1f}",
        "arms in perfect order": lambda rates: f"{rates[0].paper[2] * 100:.1f}",
    }
    every: Mapping[str, Mapping[str, _Column]] = {
        f"False findings, family-wise, %: some arm's 95% interval excludes the truth, {at}": family,
        f"Coverage of one arm's own 95% interval, %, {at}": coverage,
        f"Power: an arm that is slower is found so, %, {at}": power,
        f"Words, %, {at}": words,
        "The 2019 paper's way on the same machines, without any effect, %: one boot an arm in the order of "
        "the table, three runs of it as n = 3, Welch's t at 5%": foil,
    }
    truths = [(name, list(rates)) for name, rates in groupby(found.rates, key=lambda one: one.truth.name)]
    for caption, columns in every.items():
        rows = tuple((name, *(column(rates) for column in columns.values())) for name, rates in truths)
        yield GridTable(caption, ("truth", *columns), rows)


def case_tables(cases: Sequence[Case]) -> Iterator[GridTable]:
    """All hard cases, and what they must reach."""
    rows = tuple(
        (
            item.where,
            item.target,
            f"{'≤' if item.at_most else '≥'} {item.bound * 100:g}",
            *rate_texts(item.rate),
        )
        for item in cases
    )
    yield GridTable("Hard cases, %", ("case", "what", "bound", "found", "± (MC)"), rows)
    yield _targets_table(tuple(targets_of(cases)), "Targets of hard cases, %; bounds are widened likewise")


def _targets_table(compared: Sequence[Target], caption: str) -> GridTable:
    """What must be reached, and what was."""
    rows = tuple(
        (item.name, item.bound, " ± ".join(rate_texts(item.found)), item.where, "yes" if item.met else "NO")
        for item in compared
    )
    return GridTable(caption, ("target", "bound", "found ± MC", "nearest to its bound", "met"), rows)


def _each(share: Callable[[Rates], float | None], places: int = 1) -> _Column:
    """A share at each number of blocks, in percent."""

    def column(rates: Sequence[Rates]) -> str:
        return "/".join("-" if (one := share(item)) is None else f"{one * 100:.{places}f}" for item in rates)

    return column


def _power(effect: int) -> _Column:
    return _each(lambda item: item.power[effect].share, 0)


def _largest_error(rate: Callable[[Rates], Rate]) -> _Column:
    return lambda rates: f"{max(rate(item).error for item in rates) * 100:.2f}"


def _reference(figure: int, *, minus_from: int = 0, places: int = 1) -> _Column:
    """The other implementation's figures, where it simulated the same truth and blocks."""

    def column(rates: Sequence[Rates]) -> str:
        known = _REFERENCE.get(rates[0].truth.name, ())
        if figure >= len(known):
            return "-"
        at = dict(zip(_BLOCKS, known[figure], strict=True))
        values = [at.get(item.blocks) for item in rates]
        return "/".join("-" if value is None else f"{abs(minus_from - value):.{places}f}" for value in values)

    return column


def rate_texts(rate: Rate) -> tuple[str, str]:
    """A rate and its Monte Carlo error, in percent."""
    return f"{rate.share * 100:.1f}", f"{rate.error * 100:.2f}"
