"""Results of `vnuma calibrate` as tables, for the terminal and docs/reference/calibration.md."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from vnuma.analysis.calibration.measure import EFFECTS, Rate, Rates
from vnuma.analysis.calibration.planning import CAPS
from vnuma.analysis.calibration.reference import BLOCKS as REFERENCE_BLOCKS
from vnuma.analysis.calibration.reference import REFERENCE, Reference, Triple
from vnuma.analysis.calibration.run import Calibration
from vnuma.analysis.calibration.targets import targets
from vnuma.report.model.grid import WIDEST, GridTable, as_screen


def as_text(found: Calibration) -> str:
    """For the terminal."""
    text = textwrap.fill(origin(found), WIDEST)
    return "\n".join([f"{text}\n", *(as_screen(table) for table in tables(found))])


def as_json(found: Calibration) -> str:
    """Every rate with its studies, and the targets."""
    met = [asdict(target) for target in targets(found)]
    return json.dumps({"schema": "vnuma/calibration/1", **asdict(found), "targets": met}, indent=2) + "\n"


def tables(found: Calibration) -> Iterator[GridTable]:
    """All tables; the targets last."""
    yield _errors(found)
    yield _coverage(found)
    yield _power(found)
    yield _words(found)
    yield _foil(found)
    yield _promises(found)
    yield _stopping(found)
    yield _hard(found)
    yield _targets(found)


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
        by_effect = [_powers(rates, index) for index in range(len(EFFECTS))]
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
        (f"SD known, B = {item.blocks}, {item.effect * 100:.2f}%", *_rate(item.power))
        for item in found.promises
    ]
    rows.append(("SD from 3 blocks: plans that reach 80% for 1%", *_rate(found.pilots)))
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


def _hard(found: Calibration) -> GridTable:
    rows = tuple(
        (item.where, item.target, f"{'≤' if item.at_most else '≥'} {item.bound * 100:g}", *_rate(item.rate))
        for item in found.hard
    )
    return GridTable("Hard cases, %", ("case", "what", "bound", "found", "± (MC)"), rows)


def _targets(found: Calibration) -> GridTable:
    rows = tuple(
        (item.name, item.bound, " ± ".join(_rate(item.found)), item.where, "yes" if item.met else "NO")
        for item in targets(found)
    )
    headings = ("target", "bound", "found ± MC", "nearest to its bound", "met")
    caption = (
        "Targets, %, at 6 blocks or more; bounds are widened by two Monte Carlo errors, by more where a "
        "target has many cases"
    )
    return GridTable(caption, headings, rows)


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


def _powers(rates: Sequence[Rates], effect: int) -> str:
    return _each(rates, lambda item: item.power[effect].share, 0)


def _largest_error(rates: Sequence[Rates], rate: Callable[[Rates], Rate]) -> str:
    return f"{max(rate(item).error for item in rates) * 100:.2f}"


def _reference(
    rates: Sequence[Rates],
    triple: Callable[[Reference], Triple | None],
    *,
    minus_from: int = 0,
    places: int = 1,
) -> str:
    """The other implementation's figures, if it simulated the same truth and blocks."""
    entry = REFERENCE.get(rates[0].truth.name)
    known = triple(entry) if entry else None
    if known is None:
        return "-"
    by_blocks = dict(zip(REFERENCE_BLOCKS, known, strict=True))
    values = [by_blocks.get(item.blocks) for item in rates]
    return "/".join("-" if value is None else f"{abs(minus_from - value):.{places}f}" for value in values)


def _rate(rate: Rate) -> tuple[str, str]:
    return f"{rate.share * 100:.1f}", f"{rate.error * 100:.2f}"
