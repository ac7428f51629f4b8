"""A run's tables as an Excel workbook, one sheet each. openpyxl is optional."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnuma.domain.vm.plain_text import escaped
from vnuma.domain.vm.provenance import banner
from vnuma.errors import EnvironmentProblem, InputError, writing
from vnuma.report.archive.raw import COLUMNS, SAMPLES, sample_rows
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import answer_words
from vnuma.report.tables.csv_export import TABLES, Column, Row
from vnuma.store.open import Store

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

HELP = f"{sys.executable} -m pip install openpyxl (installed by pipx: pipx inject vnuma openpyxl)"
MOST_ROWS = 1_048_575
"""Most rows of a sheet below its headings (Excel's specifications and limits)."""

_FORMATS = {"number": "#,##0.000", "whole": "#,##0", "time": "yyyy-mm-dd hh:mm:ss"}


def write_workbook(store: Store, loaded: LoadedRun, path: Path) -> None:
    """Write a sheet about the run, one per table, and one that explains the columns.

    Raises EnvironmentProblem without openpyxl, InputError for a file that cannot be written.
    """
    tables = {name: (table.columns, table.rows(loaded)) for name, table in TABLES.items()}
    tables[SAMPLES] = (COLUMNS, sample_rows(store, loaded))
    book = _new_workbook()
    _add_about(book, loaded)
    for name, (columns, rows) in tables.items():
        _add_table(book, name, columns, rows)
    _add_columns(book, {name: columns for name, (columns, _) in tables.items()})
    with writing(path, "The workbook", fix="Name another file: -o FILE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        saved = BytesIO()  # a file that cannot be opened would make openpyxl print tracebacks at the end
        book.save(saved)
        path.write_bytes(saved.getvalue())


def _new_workbook() -> Workbook:
    try:
        from openpyxl.workbook import Workbook  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "Workbooks need openpyxl, which this Python environment does not have.", fix=HELP
        ) from error
    return Workbook(write_only=True)


def _add_about(book: Workbook, loaded: LoadedRun) -> None:
    sheet = book.create_sheet("about")
    sheet.column_dimensions["A"].width, sheet.column_dimensions["B"].width = 14, 110
    for name, value in _about(loaded):
        sheet.append([_cell(sheet, name, bold=True), _cell(sheet, value, wrap=True)])


def _about(loaded: LoadedRun) -> Iterator[tuple[str, object]]:
    if loaded.simulated:
        yield "note", banner(loaded.simulated)
    yield "run", loaded.run.name
    yield "study", loaded.study.title or loaded.study.name
    yield "state", str(loaded.run.state)
    yield "began (UTC)", loaded.run.created_at
    for analysis in loaded.result.primary:
        yield analysis.vm, answer_words(loaded, analysis)
    yield "sheets", "Nothing is rounded. An empty cell is missing or not known, never zero."


def _add_table(book: Workbook, name: str, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    from openpyxl.utils import get_column_letter  # noqa: PLC0415 - an extra

    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    for number, column in enumerate(columns, 1):
        letter = get_column_letter(number)
        sheet.column_dimensions[letter].width = max(len(column.name) + 4, 20 if column.kind == "time" else 0)
    sheet.append([_heading(sheet, column.name) for column in columns])
    last = 1
    for last, row in enumerate(rows, 2):
        if last > MOST_ROWS:
            raise InputError(
                f"The table {name} has more than the {MOST_ROWS:,} rows that a sheet holds.",
                fix=f"Take CSV: --format csv --table {name}",
            )
        sheet.append([_cell(sheet, row.get(column.name), _FORMATS.get(column.kind)) for column in columns])
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{last}"


def _add_columns(book: Workbook, tables: dict[str, Sequence[Column]]) -> None:
    _add_table(
        book,
        "columns",
        [Column(name, "text", "", "") for name in ("table", "column", "kind", "unit", "what it is")],
        (
            {"table": name, "column": one.name, "kind": one.kind, "unit": one.unit, "what it is": one.what}
            for name, columns in tables.items()
            for one in columns
        ),
    )


def _heading(sheet: Any, name: str) -> Any:
    from openpyxl.styles import Font, PatternFill  # noqa: PLC0415 - an extra

    cell = _cell(sheet, name)
    cell.font = Font(bold=True, color="FFFFFF")
    cell.fill = PatternFill("solid", fgColor="1F4E79")
    return cell


def _cell(
    sheet: Any, value: object, form: str | None = None, *, bold: bool = False, wrap: bool = False
) -> Any:
    """A cell of its type; text stays text, even if it looks like a formula, without control characters."""
    from openpyxl.cell import WriteOnlyCell  # noqa: PLC0415 - an extra
    from openpyxl.styles import Alignment, Font  # noqa: PLC0415 - an extra

    cell = WriteOnlyCell(sheet, _plain(value))
    if isinstance(value, str):
        cell.data_type = "s"
    elif form:
        cell.number_format = form
    if bold:
        cell.font = Font(bold=True)
    if wrap:
        cell.alignment = Alignment(wrap_text=True, vertical="top")
    return cell


def _plain(value: object) -> Any:
    """A value for openpyxl: UTC without a time zone, which Excel does not support."""
    if isinstance(value, str):
        return escaped(value)
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value
