"""The results of a calibration as tables of docs/reference/calibration.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tools.calibration.error_rates import EFFECTS, Rate, Rates
from tools.calibration.promised_power import CAPS
from tools.calibration.targets import Calibration, Target, targets
from vnuma.report.model.grid import GridTable

_Triple = tuple[float, float, float]

_BLOCKS = (6, 8, 12)

_TARGETS = (
    "Targets, %, at 6 blocks or more; bounds are widened by two Monte Carlo errors, by more where a target "
    "has many cases"
)


@dataclass(frozen=True)
class _Reference:
    """The rule written by others: percent at _BLOCKS of errors per comparison, for some arm, power for 1%.

    20,000 studies of an implementation of its own; it simulated no other truths.
    """

    per_comparison: _Triple
    family: _Triple
    power: _Triple | None = None


_REFERENCE = {
    "normal": _Reference((4.4, 4.5, 4.6), (4.5, 4.4, 4.5), (61, 79, 96)),
    "2% slow iterations": _Reference((4.3, 4.3, 4.2), (4.1, 4.2, 4.2), (58, 74, 87)),
    "20% slow boots": _Reference((4.4, 4.6, 4.6), (4.2, 4.1, 4.5), (9, 14, 27)),
    "heavy tails": _Reference((3.5, 3.4, 3.8), (3.3, 3.0, 3.2), (70, 84, 95)),
    "skewed": _Reference((3.8, 4.0, 4.1), (3.4, 3.6, 3.6)),
    "drift 3.6%, random order": _Reference((4.7, 4.6, 4.6), (4.6, 4.7, 4.6)),
    "drift 10%, random order": _Reference((4.7, 4.5, 4.7), (4.7, 4.3, 4.8)),
    "wandering host": _Reference((4.6, 4.7, 4.6), (4.5, 4.5, 4.5)),
    "one arm's SD x 2": _Reference((3.3, 3.0, 2.9), (4.1, 3.5, 2.9), (43, 60, 81)),
    "one arm's SD x 3": _Reference((2.1, 1.8, 1.7), (2.4, 1.7, 1.5)),
    "reference's SD x 2": _Reference((6.4, 5.8, 5.3), (5.7, 5.0, 4.0)),
    "drift 3.6%, fixed order": _Reference((16.1, 13.3, 11.1), (20.9, 17.0, 13.6)),
}


def tables(found: Calibration) -> Iterator[GridTable]:
    """All tables; the targets last."""
    yield _errors(found)
    yield _coverage(found)
    yield _power(found)
    yield _words(found)
    yield _foil(found)
    yield _promises(found)
    yield _stopping(found)
    yield targets_table(targets(found))


def origin(found: Calibration) -> str:
    """What was simulated, as a paragraph."""
    return (
        f"{found.studies:,} simulated studies for each line and number of blocks B, seed {found.seed}; "
        "4 arms, A/A but where the reference is noisy, SD 0.5% between and 0.5% within boots, 3 iterations. "
        "The same command gives the same figures. Reference: another implementation of the same rule, "
        "20,000 studies."
    )


def _errors(found: Calibration) -> GridTable:
    return _table(
        found,
        f"False findings, family-wise, %: some arm's 95% interval excludes the truth, {_at(found)}",
        ("found", "± (MC)", "reference"),
        lambda rates: (
            _each(rates, lambda item: item.family.share),
            _largest_error(rates, lambda item: item.family),
            _reference(rates, lambda reference: reference.family),
        ),
    )


def _coverage(found: Calibration) -> GridTable:
    return _table(
        found,
        f"Coverage of one arm's own 95% interval, %, {_at(found)}",
        ("mean of arms", "reference", "worst arm", "± (MC)", "rank method"),
        lambda rates: (
            _each(rates, lambda item: 1 - item.per_comparison.share),
            _reference(rates, lambda reference: reference.per_comparison, minus_from=100),
            _each(rates, lambda item: 1 - item.worst_arm.share),
            _largest_error(rates, lambda item: item.worst_arm),
            _each(rates, lambda item: None if item.rank_error is None else 1 - item.rank_error.share),
        ),
    )


def _power(found: Calibration) -> GridTable:
    def row(rates: Sequence[Rates]) -> tuple[str, ...]:
        powers = zip(*(item.power for item in rates), strict=True)
        by_effect = ["/".join(f"{rate.share * 100:.0f}" for rate in each) for each in powers]
        reference = _reference(rates, lambda entry: entry.power, places=0)
        return (*by_effect, reference, _largest_error(rates, lambda item: item.power[1]))

    headings = (*(f"{effect * 100:g}% slower" for effect in EFFECTS), "reference, 1%", "± (MC)")
    return _table(found, f"Power: an arm that is slower is found so, %, {_at(found)}", headings, row)


def _words(found: Calibration) -> GridTable:
    return _table(
        found,
        f"Words, %, {_at(found)}",
        ("false direction", "false equiv.", "true equiv.", "A/A alarm", "withheld"),
        lambda rates: (
            _each(rates, lambda item: item.false_word.share),
            _each(rates, lambda item: item.false_equivalent.share),
            _each(rates, lambda item: item.called_equivalent.share, 0),
            _each(rates, lambda item: item.a_a_alarm.share if item.a_a_alarm else None),
            _each(rates, lambda item: item.withheld.share, 0),
        ),
    )


def _foil(found: Calibration) -> GridTable:
    return _table(
        found,
        "The 2019 paper's way on the same machines, without any effect, %: one boot an arm in the order of "
        "the table, three runs of it as n = 3, Welch's t at 5%",
        ("false, per comparison", "false, some arm", "arms in perfect order"),
        lambda rates: (
            f"{rates[0].paper.per_comparison * 100:.1f}",
            f"{rates[0].paper.family * 100:.1f}",
            f"{rates[0].paper.in_order * 100:.1f}",
        ),
    )


def _promises(found: Calibration) -> GridTable:
    rows = [
        (f"SD known, B = {item.blocks}, {item.effect * 100:.2f}%", *rate_texts(item.power))
        for item in found.promises
    ]
    rows.append(("SD from 3 blocks: plans that reach 80% for 1%", *rate_texts(found.pilots)))
    return GridTable("Power where 80% is promised, %", ("promise", "found", "± (MC)"), tuple(rows))


def _stopping(found: Calibration) -> GridTable:
    rows = tuple(
        (
            f"{item.truth.name}, {item.target * 100:g}%, from B = {item.first}",
            *(f"{rate.share * 100:.1f}" for rate in item.family),
            f"{max(rate.error for rate in item.family) * 100:.2f}",
            f"{item.mean_blocks:.1f}",
        )
        for item in found.stopping
    )
    headings = ("truth, half-width", *(f"cap {cap}" for cap in CAPS), "± (MC)", "mean blocks, cap 24")
    return GridTable("Family-wise error when stopping on precision, %", headings, rows)


def targets_table(compared: Sequence[Target], caption: str = _TARGETS) -> GridTable:
    """What must be reached, and what was."""
    rows = tuple(
        (item.name, item.bound, " ± ".join(rate_texts(item.found)), item.where, "yes" if item.met else "NO")
        for item in compared
    )
    return GridTable(caption, ("target", "bound", "found ± MC", "nearest to its bound", "met"), rows)


def _table(
    found: Calibration,
    caption: str,
    headings: tuple[str, ...],
    row: Callable[[Sequence[Rates]], tuple[str, ...]],
) -> GridTable:
    groups = groupby(found.rates, key=lambda rates: rates.truth.name)
    rows = tuple((name, *row(list(rates))) for name, rates in groups)
    return GridTable(caption, ("truth", *headings), rows)


def _at(found: Calibration) -> str:
    return "B = " + "/".join(map(str, found.blocks))


def _each(rates: Sequence[Rates], share: Callable[[Rates], float | None], places: int = 1) -> str:
    values = [share(item) for item in rates]
    return "/".join("-" if value is None else f"{value * 100:.{places}f}" for value in values)


def _largest_error(rates: Sequence[Rates], rate: Callable[[Rates], Rate]) -> str:
    return f"{max(rate(item).error for item in rates) * 100:.2f}"


def _reference(
    rates: Sequence[Rates],
    triple: Callable[[_Reference], _Triple | None],
    *,
    minus_from: int = 0,
    places: int = 1,
) -> str:
    """The other implementation's figures, where it simulated the same truth and blocks."""
    entry = _REFERENCE.get(rates[0].truth.name)
    known = triple(entry) if entry else None
    if known is None:
        return "-"
    by_blocks = dict(zip(_BLOCKS, known, strict=True))
    values = [by_blocks.get(item.blocks) for item in rates]
    return "/".join("-" if value is None else f"{abs(minus_from - value):.{places}f}" for value in values)


def rate_texts(rate: Rate) -> tuple[str, str]:
    """A rate and its Monte Carlo error, in percent."""
    return f"{rate.share * 100:.1f}", f"{rate.error * 100:.2f}"
