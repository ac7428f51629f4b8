"""What is not used for the verdict, as tables: other methods, waits, and the samples' other figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from vnuma.analysis.compare import Interval
from vnuma.analysis.result import Analysis, FigureCell, FigureRow
from vnuma.analysis.sensitivity import sensitivity
from vnuma.analysis.wording import amount, limits, signed
from vnuma.domain.workloads.metric import in_table, medians
from vnuma.report.model.executions import WaitShare
from vnuma.report.model.grid import GridTable, as_screen
from vnuma.report.model.model import LoadedRun
from vnuma.report.published.published_comparison import to_reference
from vnuma.words.plain_text import filled, plural
from vnuma.words.provenance import banner


def sensitivity_table(analysis: Analysis) -> GridTable:
    """The arms that have at least one pair, as text."""
    few = f"needs 6 {plural(analysis.replicate)}"
    rows = []
    for arm in analysis.arms:
        if arm.contrast.boots:
            other, rank = sensitivity(arm), arm.contrast.rank
            out = other.left_out
            rows.append(
                (
                    arm.arm,
                    f"{signed(rank.ratio, 2)} ({limits(Interval(rank.low, rank.high), 2)})" if rank else few,
                    limits(out, 2) + "%" if out else f"one {analysis.replicate} only",
                    few if other.sign_flip_p is None else f"{other.sign_flip_p:.3g}",
                    "; ".join(other.dissent) or "no",
                )
            )
    left_out = f"Estimate, each {analysis.replicate} left out once"
    headings = ("Arm", "Hodges-Lehmann", left_out, "Sign-flip p", "Disagrees")
    return GridTable("Sensitivity", headings, tuple(rows))


def sensitivity_text(analysis: Analysis, split: str, where: str, width: int) -> str:
    """A line per arm, under a title saying that none is used for the verdict, with `split` last; empty
    without pairs.
    """
    rows = sensitivity_table(analysis).rows
    if not rows:
        return ""
    title = f"Sensitivity{where}: other methods, arm by arm and not corrected; not used for the verdict"
    said = [
        f"{arm}: Hodges-Lehmann {rank}, each {analysis.replicate} left out once {left_out}, "
        f"sign-flip p {sign_flip}" + (f"; disagrees: {dissent}" if dissent != "no" else "")
        for arm, rank, left_out, sign_flip, dissent in rows
    ]
    return "\n".join(filled(text, width - 1, then="  ") for text in (title, *said, split)) + "\n"


MOST = 8
"""Most wait types shown; the raw data has all."""

NO_WAITS = "wait statistics are not known"


def waits_tables(loaded: LoadedRun, vm: str) -> list[GridTable]:
    """In % of elapsed time, all arms by form first, then each form by arm; empty when waits are unknown or
    none occurred.
    """
    forms = [item for item in loaded.waits if item.vm == vm and item.shares is not None]
    tables = [_waits_table("All arms", [f"Form {item.form}" for item in forms], forms)]
    for form in dict.fromkeys(item.form for item in forms):
        arms = _by_arm(loaded, vm, form)
        tables.append(_waits_table(f"Form {form}, by arm", [str(item.arm) for item in arms], arms))
    return [table for table in tables if table.rows]


def waits_grids(loaded: LoadedRun, vm: str) -> list[GridTable]:
    """The same tables for files: each caption has the unit, the VM and arms, and whether it is simulated."""
    simulated = f"{banner(loaded.simulated)}. " if loaded.simulated else ""
    return [
        replace(
            table,
            caption=f"{simulated}{loaded.run.name}, {vm}: waits, {table.caption[:1].lower()}"
            f"{table.caption[1:]}; % of elapsed time, lower is less waiting",
            headings=("wait type", *table.headings[1:]),
        )
        for table in waits_tables(loaded, vm)
    ]


def _by_arm(loaded: LoadedRun, vm: str, form: str) -> list[WaitShare]:
    """One form's arms in the study's order, the positive control last."""
    known = {
        item.arm: item
        for item in loaded.waits_by_arm
        if (item.vm, item.form) == (vm, form) and item.shares is not None
    }
    order = [arm for arm in loaded.study.labels if arm in known]
    return [known[arm] for arm in [*order, *(arm for arm in known if arm not in order)]]


def _waits_table(title: str, columns: Sequence[str], known: Sequence[WaitShare]) -> GridTable:
    largest: dict[str, float] = {}
    for item in known:
        for name, share in item.shares or ():
            largest[name] = max(share, largest.get(name, 0.0))
    names = sorted(largest, key=lambda name: (-largest[name], name))[:MOST]
    rows = tuple((name, *(_percent(item, name) for item in known)) for name in names)
    return GridTable(title, ("Wait type", *columns), rows)


def _percent(item: WaitShare, name: str) -> str:
    share = (item.of(name) or 0.0) * 100
    return "< 0.1" if 0 < share < 0.05 else f"{share:.1f}"


NO_FIGURE = "not measured"


def named_figures(loaded: LoadedRun, vm: str) -> list[tuple[str, GridTable]]:
    """A table for each figure of each form: a line a size, a column an arm. Its name is as `seek-spins`."""
    mine = [row for row in loaded.result.figures if row.vm == vm]
    return [
        (f"{form}-{metric.name}", _table(loaded, list(rows)))
        for (form, metric), rows in groupby(mine, key=lambda row: (row.form, row.metric))
    ]


def figures_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The same for the terminal; tables that are wider become lines."""
    for _, table in named_figures(loaded, vm):
        text = as_screen(table, width).rstrip("\n")
        if max(map(len, text.splitlines())) <= width:
            yield text
        else:
            yield "\n".join([filled(table.caption, width), *_lines(table)])


def _table(loaded: LoadedRun, rows: Sequence[FigureRow]) -> GridTable:
    form, metric = rows[0].form, rows[0].metric
    what = f"{metric.name}, {metric.unit}, {metric.direction}"
    return GridTable(
        f"Also measured, form {form}: {what}; {medians(loaded.result.design.replicate)}",
        (loaded.result.design.size_word, *(cell.arm for cell in rows[0].cells)),
        tuple(line for row in rows for line in _table_lines(loaded, row)),
    )


def _table_lines(loaded: LoadedRun, row: FigureRow) -> Iterator[tuple[str, ...]]:
    """One size: the figures, and the published ratios to the reference arm, if any."""
    yield (in_table(row.size), *_figures(row))
    theirs = published_ratios(loaded, row)
    if theirs:
        yield ("  ratio", *(_times(to_reference_arm(row, cell)) for cell in row.cells))
        yield ("  published", *(_times(theirs.get(cell.arm)) for cell in row.cells))


def published_ratios(loaded: LoadedRun, row: FigureRow) -> Mapping[str, float]:
    """Published ratios of that figure to their reference arm, by arm."""
    if loaded.study.published is None:
        return {}
    ratios = loaded.study.published.figure_ratios.get(row.form, {}).get(row.metric.name, {})
    return to_reference(ratios, loaded.study.reference)


def to_reference_arm(row: FigureRow, cell: FigureCell) -> float | None:
    """Ratio of medians to the reference arm's; None if either is unknown or the reference's is 0."""
    reference = row.cells[0].median
    return cell.median / reference if cell.median is not None and reference else None


def _times(ratio: float | None) -> str:
    return "not known" if ratio is None else f"x{ratio:.3g}"


def _figures(row: FigureRow) -> Iterator[str]:
    for cell in row.cells:
        yield NO_FIGURE if cell.median is None else amount(cell.median, row.metric.unit)


def _lines(table: GridTable) -> Iterator[str]:
    for size, *figures in table.rows:
        for arm, figure in zip(table.headings[1:], figures, strict=True):
            yield f"  {size} {arm}: {figure}"
