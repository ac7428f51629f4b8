"""The run as tidy CSV: one line a value, nothing rounded; an empty field is missing, never zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from vnuma.analysis.result import Analysis
from vnuma.analysis.table import TableCell
from vnuma.analysis.verdict import Verdict
from vnuma.report.model import LoadedRun

COLUMNS = (
    *("run", "simulated", "scenario", "partial", "vm", "form", "metric", "primary", "size", "arm"),
    *("n_boots", "median_ms", "min_ms", "max_ms", "mad_ms", "diff_ms", "diff_percent", "level_percent"),
    *("lo_percent", "hi_percent", "verdict", "withheld", "provisional", "reason"),
    *("metric_name", "unit", "better", "median", "min", "max", "mad", "diff"),
)
"""Columns of the CSV. `size` is `all` for the mean over sizes, which alone decides.

The figures of any unit stand in `median` to `diff`; those in ms stand in the `_ms` columns too.
"""


def as_csv(loaded: LoadedRun) -> str:
    """One line for each VM, form, metric, size and arm. An empty field is a missing value.

    Text that a spreadsheet would run as a formula is preceded by an apostrophe.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for analysis in loaded.result.analyses:
        for row in _csv_rows(loaded, analysis):
            writer.writerow({key: _field(value) for key, value in row.items()})
    return out.getvalue()


def _csv_rows(loaded: LoadedRun, analysis: Analysis) -> Iterator[dict[str, object]]:
    common: dict[str, object] = {
        "run": loaded.run.name,
        "simulated": loaded.simulated is not None,
        "scenario": loaded.simulated,
        "partial": loaded.partial,
        "vm": analysis.vm,
        "form": analysis.form,
        "metric": analysis.metric,
        "primary": analysis.primary,
        "metric_name": analysis.measure.name,
        "unit": analysis.measure.unit,
        "better": analysis.measure.better,
    }
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        by_arm = {arm.arm: arm.verdict for arm in sizes.arms}
        for cell in table.cells:
            row = common | {"size": table.size} | _cell(cell, analysis.measure.unit)
            yield row | (
                _verdict_fields(by_arm[cell.arm]) if cell.arm in by_arm else {"verdict": "reference"}
            )
    for arm in analysis.arms:
        yield (
            common
            | {"size": "all", "arm": arm.arm, "n_boots": arm.contrast.boots}
            | _verdict_fields(arm.verdict)
        )


def _cell(cell: TableCell, unit: str) -> dict[str, object]:
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
        **({f"{name}_ms": value for name, value in figures.items()} if unit == "ms" else {}),
        "reason": None if cell.boots else "no valid boot",
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


def _field(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
