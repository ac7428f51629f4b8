"""Tidy tables: one line per value, unrounded; an empty field is missing, never zero.

The run's comparisons, its samples' other figures, and its waits.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from vnuma.analysis.result import Analysis, TableCell
from vnuma.analysis.verdict import Verdict
from vnuma.domain.workloads.metric import none_valid
from vnuma.report.model.grid import field_text
from vnuma.report.model.model import LoadedRun
from vnuma.report.tables.secondary import NO_FIGURE, NO_WAITS

DataType = Literal["text", "whole", "number", "yes/no", "time"]
Row = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column's content and unit. An empty field is unknown or missing."""

    name: str
    kind: DataType
    unit: str
    what: str


def write_tidy(out: TextIO, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Comma-separated, below a header line, row by row."""
    writer = csv.DictWriter(out, [column.name for column in columns], lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: field_text(value) for name, value in row.items()} for row in rows)


def described(heading: str, intro: str, columns: Sequence[Column]) -> str:
    """The columns' descriptions: a part of the data dictionary."""
    lines = [f"| {c.name} | {c.kind} | {c.unit} | {c.what} |" for c in columns]
    return "\n".join(
        [
            f"## {heading}",
            "",
            intro,
            "",
            "| column | kind | unit | what it is |",
            "| --- | --- | --- | --- |",
            *lines,
            "",
        ]
    )


_RUN = (
    Column("run", "text", "", "name of the run"),
    Column("simulated", "yes/no", "", "true: from the lab's cost model, not from hardware"),
    Column("scenario", "text", "", "the lab's scenario"),
    Column("partial", "yes/no", "", "true: the run is still going, figures will change"),
    Column("vm", "text", "", "inventory name of the VM"),
    Column("form", "text", "", "which of the workload's forms, as client or server"),
)
"""The first columns of every table."""

_RESULTS = (
    *_RUN,
    Column("metric", "text", "", "field that was analysed: elapsed_ms, cpu_ms, client_ms or value"),
    Column("primary", "yes/no", "", "true: this form and metric are used for the verdict"),
    Column(
        "size",
        "text",
        "",
        "size, in the study's size_word; `all`: the mean over sizes, used for the verdict",
    ),
    Column("arm", "text", "", "topology or named arm"),
    Column("n_boots", "whole", "", "boots (passes of a machine) behind the figures"),
    Column(
        "median_ms", "number", "ms", "median of boot medians; this and the next four where the unit is ms"
    ),
    Column("min_ms", "number", "ms", "smallest boot median"),
    Column("max_ms", "number", "ms", "largest boot median"),
    Column("mad_ms", "number", "ms", "median distance of boot medians from their median, not scaled"),
    Column("diff_ms", "number", "ms", "diff_percent of the reference's median"),
    Column("diff_percent", "number", "%", "within-block ratio to the reference, minus 1"),
    Column("level_percent", "number", "%", "level at which the limits hold for all arms together"),
    Column("lo_percent", "number", "%", "lower limit of diff_percent"),
    Column("hi_percent", "number", "%", "upper limit of diff_percent"),
    Column("verdict", "text", "", "slower, faster, equivalent, undecided, too few boots; or reference"),
    Column("withheld", "text", "", "why the verdict is withheld"),
    Column("provisional", "yes/no", "", "true: too few boots, the figures are provisional"),
    Column("reason", "text", "", "why there is no figure"),
    Column("metric_name", "text", "", "the metric in words"),
    Column("unit", "text", "", "unit of median to diff"),
    Column("better", "text", "", "lower or higher: which way is better"),
    Column("median", "number", "declared", "as median_ms, in the column `unit`"),
    Column("min", "number", "declared", "as min_ms"),
    Column("max", "number", "declared", "as max_ms"),
    Column("mad", "number", "declared", "as mad_ms"),
    Column("diff", "number", "declared", "as diff_ms"),
)

_FIGURES = (
    *_RUN,
    Column("size", "whole", "", "size, in the study's size_word"),
    Column("arm", "text", "", "topology or named arm; the A/A column counts with its arm"),
    Column("figure", "text", "", "name of the figure, as spins or remote_lookups"),
    Column("unit", "text", "", "its unit"),
    Column("better", "text", "", "lower or higher: which way is better"),
    Column("n_boots", "whole", "", "boots (passes of a machine) that have the figure"),
    Column("median", "number", "declared", "median of boot medians, in the column `unit`; not compared"),
    Column("reason", "text", "", "why there is no figure"),
)

_WAITS = (
    *_RUN,
    Column("arm", "text", "", "topology or named arm; `all`: all arms together"),
    Column(
        "wait_type",
        "text",
        "",
        "as sys.dm_exec_session_wait_stats names it; empty: none occurred, or `reason`",
    ),
    Column("share_percent", "number", "%", "wait time over elapsed time of the timed iterations that count"),
    Column("reason", "text", "", "why waits are not known"),
)


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
        out = io.StringIO()
        write_tidy(out, self.columns, self.rows(loaded))
        return out.getvalue()

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
        CsvTable("results", "A line for each VM, form, metric, size and arm.", _RESULTS, _results),
        CsvTable("figures", "A line for each VM, form, size, arm and other figure.", _FIGURES, _figures),
        CsvTable("waits", "A line for each VM, form, arm and wait type.", _WAITS, _waits),
    )
}
"""By name, as in `vnuma results --table` and the archive's files."""


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
        "verdict": str(verdict.label),
        "withheld": None if verdict.withheld is None else str(verdict.withheld),
        "provisional": verdict.provisional,
    }
