"""`vnuma reanalyse`: read a published table and recompute its figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from vnuma.analysis.published import RUN_SD, RUNS, STUDIES, Description, Table, describe, drift_alone
from vnuma.analysis.wording import amount, signed
from vnuma.errors import InputError, text_of
from vnuma.report.model.grid import WIDEST, GridTable, as_markdown, as_screen
from vnuma.words.plain_text import counted, filled

FORM = "The first line names the columns: rows_per_side,ARM,ARM,...; then one line a size, times in ms."
SIZE = "rows_per_side"
SMALL_DRIFT = 0.01
MOST_CELLS = 250
"""Limit of sizes times arms, since each is simulated thousands of times in memory."""

LONGEST_MS = 1e12
SHORTEST_MS = 1e-6
MOST_ROWS = 10**12
_MOST_LETTERS = 100_000


@dataclass(frozen=True)
class Publication:
    """A table with the metadata in its file."""

    title: str
    source: str
    table: Table


def read_publication(path: Path) -> Publication:
    """Read a CSV file of medians. Raises InputError with the invalid line."""
    lines = text_of(path).splitlines()
    if sum(map(len, lines)) > _MOST_LETTERS:
        raise InputError(f"{path} is larger than {_MOST_LETTERS:,} characters.", fix=FORM)
    notes = dict(_note(line) for line in lines if line.startswith("#"))
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    rows = [(n, [cell.strip() for cell in next(csv.reader([line]))]) for n, line in numbered]
    if len(rows) < 2:
        raise InputError(f"{path} holds no table.", fix=FORM)
    (at, header), *body = rows
    if len(header) < 3 or len(set(header)) != len(header) or not all(header):
        raise InputError(f"{path}:{at}: the columns are not rows_per_side and two arms or more.", fix=FORM)
    _refuse_other_figures(path, at, header[0], notes)
    if len(body) * (len(header) - 1) > MOST_CELLS:
        raise InputError(
            f"{path} has {len(body):,} sizes of {len(header) - 1:,} arms: {MOST_CELLS} times are the most.",
            fix="Re-analyse it in parts.",
        )
    sizes, ms = zip(*(_row(path, n, cells, len(header)) for n, cells in body), strict=True)
    if list(sizes) != sorted(set(sizes)):
        raise InputError(f"{path}: sizes must rise from line to line.", fix=FORM)
    return Publication(
        notes.get("title", path.stem), notes.get("source", str(path)), Table(tuple(header[1:]), sizes, ms)
    )


def _refuse_other_figures(path: Path, line: int, size: str, notes: Mapping[str, str]) -> None:
    """Only times by rows are accepted, since the simulated drift slows a host and lengthens times.

    Raises InputError, which says where figures of other units can be compared.
    """
    unit, better = notes.get("unit", "ms"), notes.get("better", "lower")
    if (unit, better, size) != ("ms", "lower", SIZE):
        raise InputError(
            f"{path}:{line}: figures in {unit} ({better} is better) by {size} are not read: what drift alone "
            "would do is simulated for elapsed times, and times a row need rows.",
            fix="Put them under published.figures of a study: its report compares them.",
        )


def _note(line: str) -> tuple[str, str]:
    name, _, value = line.lstrip("# ").partition(":")
    return name.strip(), value.strip()


def _row(path: Path, line: int, cells: list[str], columns: int) -> tuple[int, tuple[float, ...]]:
    if len(cells) != columns:
        raise InputError(f"{path}:{line}: {len(cells)} values, but {columns} columns.", fix=FORM)
    try:
        size, times = int(cells[0]), tuple(float(cell) for cell in cells[1:])
    except ValueError as error:
        raise InputError(f"{path}:{line}: {error}.", fix=FORM) from error
    if not 1 <= size <= MOST_ROWS or not all(SHORTEST_MS <= time <= LONGEST_MS for time in times):
        raise InputError(
            f"{path}:{line}: sizes and times must be above 0, and not beyond {LONGEST_MS:g}.", fix=FORM
        )
    return size, times


def as_text(found: Publication) -> str:
    """For the terminal."""
    return _page(found, as_screen, lambda text: filled(text, WIDEST, then="  "))


def as_page(found: Publication) -> str:
    """Markdown."""
    return f"# {found.title}\n\n{_page(found, as_markdown, str)}"


def as_json(found: Publication) -> str:
    """Published figures, their recomputed ratios, and the effect of drift alone."""
    described = describe(found.table)
    document = {
        "schema": "vnuma/reanalysis/1",
        **asdict(found),
        "described": asdict(described),
        "drift_alone": [asdict(item) for item in drift_alone(found.table, _drifts(described))],
    }
    return json.dumps(document, indent=2) + "\n"


def _page(found: Publication, render: Callable[[GridTable], str], flow: Callable[[str], str]) -> str:
    table, described = found.table, describe(found.table)
    parts = [
        flow(f"{found.title}. {found.source}"),
        render(_percentages(table, described)),
        "What can be said\n\n" + "\n".join(flow(f"- {text}") for text in _can(table, described)),
        render(_drift(table, described)),
        "What cannot be said\n\n" + "\n".join(flow(f"- {text}") for text in _cannot(table)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _percentages(table: Table, described: Description) -> GridTable:
    rows = []
    for size, times, ratios in zip(table.sizes, table.ms, described.ratios, strict=True):
        rows.append((f"{size:,}", *(amount(ms, "ms") for ms in times)))
        rows.append(("  %", "ref", *(signed(ratio, 2) for ratio in ratios[1:])))
    rows.append(("all sizes, %", "ref", *(signed(ratio, 2) for ratio in described.mean_ratios[1:])))
    caption = f"Elapsed ms as published, lower is faster; % from {table.arms[0]} (no interval: see below)"
    return GridTable(caption, ("rows a side", *table.arms), tuple(rows))


def _can(table: Table, described: Description) -> Iterator[str]:
    reference, last = table.arms[0], table.arms[-1]
    slowest = max(range(len(table.arms)), key=lambda i: described.mean_ratios[i])
    yield (
        f"As measured, {table.arms[slowest]} took {signed(described.mean_ratios[slowest], 2)} against "
        f"{reference} over all sizes (geometric mean)."
    )
    if described.slopes and described.exponent:
        gaps = [ratios[-1] for ratios in described.ratios]
        peak = table.sizes[gaps.index(max(gaps))]
        yield (
            f"The difference of {last} in ms grows with size because the time does (the reference's grows "
            f"with the joined rows to the power {described.exponent:.2f}); in percent it changes by "
            f"{described.slopes[-1] + 0.0:+.2f} points per doubling of rows and is largest at "
            f"{peak:,} rows a side."
        )
    costs = described.microseconds_per_row
    yield (
        f"{reference} needed {min(costs):.2f} to {max(costs):.2f} microseconds for each joined row, at every "
        "size: where rows are streamed to a client, that is the pace of sending them."
    )
    yield (
        f"In {described.in_order} of {counted(len(table.sizes), 'row')} every arm is slower than the one "
        "before it. Topology would do that; so would drift in the order of the table."
    )


def _drifts(described: Description) -> list[float]:
    """No drift, a small one, and one as large as the last arm's difference."""
    observed = max(described.mean_ratios[-1] - 1, 0.0)
    return list(dict.fromkeys([0.0, SMALL_DRIFT, round(observed, 4)]))


def _drift(table: Table, described: Description) -> GridTable:
    rows = tuple(
        (
            f"{item.drift * 100:.1f}%",
            f"{item.boot_sd * 100:.1f}%",
            f"{item.fixed * 100:.1f}",
            f"{item.random * 100:.1f}",
        )
        for item in drift_alone(table, _drifts(described))
    )
    caption = (
        f"What drift alone would do: % of {STUDIES:,} simulated tables without any effect in which every "
        f"arm is slower than the one before it, in every row. One boot an arm, median of {RUNS} runs "
        f"(SD {RUN_SD * 100:.1f}%)"
    )
    headings = ("drift, first boot to last", "SD between boots", "order of the table", "random order")
    return GridTable(caption, headings, rows)


def _cannot(table: Table) -> Iterator[str]:
    described = describe(table)
    yield "No interval, no p value: a median per cell says nothing about how boots of one arm differ."
    if described.residual_sd is not None and described.half_width is not None:
        yield (
            f"The residuals of size + arm (SD {described.residual_sd * 100:.2f}%) would give "
            f"{described.half_width * 100:.2f}% on either side of each difference, but they hold no "
            "variation between boots: as an error they are too small by an unknown amount."
        )
    yield (
        "Not that topology caused the differences: arm and time cannot be told apart unless the order was "
        "random."
    )
    yield "Not equivalence either: a small difference without an interval is not shown to be small."
    yield (
        "To find out: blocks in random order, the reference twice in each, 6 boots or more "
        "(vnuma power STUDY)."
    )
