"""The run as tidy CSV: its comparisons, its samples' other figures, and its waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vnuma.analysis.result import Analysis
from vnuma.analysis.table import TableCell
from vnuma.analysis.verdict import Verdict
from vnuma.domain.workloads.replicate import none_valid
from vnuma.report.model.model import LoadedRun
from vnuma.report.tables.csv_columns import FIGURES, RESULTS, WAITS
from vnuma.report.tables.figures import NO_FIGURE
from vnuma.report.tables.tidy import Column, Row, described, tidy_csv
from vnuma.report.tables.waits import NO_WAITS

ALL = "all"
"""Value for all sizes or all arms together."""


@dataclass(frozen=True)
class CsvTable:
    """One table of a run: `what` describes a line."""

    name: str
    what: str
    columns: tuple[Column, ...]
    rows: Callable[[LoadedRun], Iterator[Row]]

    def of(self, loaded: LoadedRun) -> str:
        """The table as CSV."""
        return tidy_csv(self.columns, self.rows(loaded))

    @property
    def dictionary(self) -> str:
        """Its columns, for people."""
        return described(f"{self.name}.csv", self.what, self.columns)


def _results(loaded: LoadedRun) -> Iterator[Row]:
    for analysis in loaded.result.analyses:
        yield from _analysis_rows(loaded, analysis)


def _figures(loaded: LoadedRun) -> Iterator[Row]:
    for row in loaded.result.figures:
        common = _run(loaded, row.vm, row.form) | {"size": row.size, "figure": row.metric.name}
        for cell in row.cells:
            yield {
                **common,
                "arm": cell.arm,
                "unit": row.metric.unit,
                "better": row.metric.better,
                "n_boots": cell.boots,
                "median": cell.median,
                "reason": None if cell.boots else NO_FIGURE,
            }


def _waits(loaded: LoadedRun) -> Iterator[Row]:
    for item in (*loaded.waits, *loaded.waits_by_arm):
        common = _run(loaded, item.vm, item.form) | {"arm": item.arm or ALL}
        if not item.shares:
            yield common | {"reason": NO_WAITS if item.shares is None else None}
        for name, share in item.shares or ():
            yield common | {"wait_type": name, "share_percent": share * 100, "reason": None}


TABLES = {
    table.name: table
    for table in (
        CsvTable("results", "A line for each VM, form, metric, size and arm.", RESULTS, _results),
        CsvTable("figures", "A line for each VM, form, size, arm and other figure.", FIGURES, _figures),
        CsvTable("waits", "A line for each VM, form, arm and wait type.", WAITS, _waits),
    )
}
"""By name, as in `vnuma results --table` and the archive's files."""


def as_csv(loaded: LoadedRun) -> str:
    """The comparisons: a line for each VM, form, metric, size and arm."""
    return TABLES["results"].of(loaded)


def _run(loaded: LoadedRun, vm: str, form: str) -> dict[str, object]:
    return {
        "run": loaded.run.name,
        "simulated": loaded.simulated is not None,
        "scenario": loaded.simulated,
        "partial": loaded.partial,
        "vm": vm,
        "form": form,
    }


def _analysis_rows(loaded: LoadedRun, analysis: Analysis) -> Iterator[Row]:
    common = _run(loaded, analysis.vm, analysis.form) | {
        "metric": analysis.metric,
        "primary": analysis.primary,
        "metric_name": analysis.measure.name,
        "unit": analysis.measure.unit,
        "better": analysis.measure.better,
    }
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        by_arm = {arm.arm: arm.verdict for arm in sizes.arms}
        for cell in table.cells:
            row = common | {"size": table.size} | _cell(cell, analysis)
            yield row | (
                _verdict_fields(by_arm[cell.arm]) if cell.arm in by_arm else {"verdict": "reference"}
            )
    for arm in analysis.arms:
        yield (
            common
            | {"size": ALL, "arm": arm.arm, "n_boots": arm.contrast.boots}
            | _verdict_fields(arm.verdict)
        )


def _cell(cell: TableCell, analysis: Analysis) -> dict[str, object]:
    figures = {
        "median": cell.median,
        "min": cell.low,
        "max": cell.high,
        "mad": cell.mad,
        "diff": cell.difference,
    }
    return {
        "arm": cell.arm,
        "n_boots": cell.boots,
        **figures,
        **({f"{name}_ms": value for name, value in figures.items()} if analysis.measure.unit == "ms" else {}),
        "reason": None if cell.boots else none_valid(analysis.replicate),
    }


def _verdict_fields(verdict: Verdict) -> dict[str, object]:
    interval = verdict.interval
    return {
        "diff_percent": None if verdict.ratio is None else (verdict.ratio - 1) * 100,
        "level_percent": verdict.level * 100,
        "lo_percent": None if interval is None else (interval.low - 1) * 100,
        "hi_percent": None if interval is None else (interval.high - 1) * 100,
        "verdict": str(verdict.word),
        "withheld": None if verdict.withheld is None else str(verdict.withheld),
        "provisional": verdict.provisional,
    }
