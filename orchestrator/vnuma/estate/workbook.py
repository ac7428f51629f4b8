"""Sheets of an export as rows by column, whatever the headers in its version; and workbooks that hold them.

Excel workbooks are read in a process of its own, with limits on memory and time: one of 1 MB can describe
billions of cells, for which its reader allocates memory before it returns one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook

from vnuma.errors import InputError, reading
from vnuma.isolation import IsolatedModule, IsolationError, bound

_NOT_WORD = re.compile(r"[^a-z0-9#%]")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([.,' \u00a0\u202f\u2019]\d{3})+")

_QUANTITY = re.compile(r"([-+]?\d[\d.,' \u00a0\u202f\u2019]*)\s*([a-zA-Z%]{0,6})")

_LONGEST_NUMBER = 18
"""More characters than any number in an export has."""
_LARGEST = 10**12
"""More than any count in an export, including memory in MB."""

YES = {
    *("true", "1", "yes", "wahr", "ja", "vrai", "oui", "verdadero"),
    *("enabled", "aktiviert"),
    *("si", "sí", "vero", "waar", "sant", "prawda"),
}
NO = {
    *("disabled", "deaktiviert"),
    *("false", "0", "no", "falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "falskt", "fałsz"),
}
"""Excel's words for yes and no, in the language of whoever saved the file last."""


def plain(header: object) -> str:
    """A header without case, spaces and signs: `Cores p/s` and `cores P/S` are `coresps`."""
    return _NOT_WORD.sub("", str(header).strip().lower())


def number(value: object) -> int | None:
    """A count, also from text with thousands separators of any language; None if it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    found = value if isinstance(value, int | float) else _from_text(str(value).strip())
    return round(found) if found is not None and 0 <= found <= _LARGEST else None


def _from_text(text: str) -> float | None:
    if len(text) > _LONGEST_NUMBER:
        return None
    if _THOUSANDS.fullmatch(text):
        return int(re.sub(r"[^-\d]", "", text))
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def quantity(text: str) -> tuple[float, str] | None:
    """A number with its unit in lower case: `1,5 TB` is (1.5, "tb"). None for anything else."""
    match = _QUANTITY.fullmatch(text.strip())
    found = _from_text(match[1].strip()) if match else None
    return (found, match[2].lower()) if match and found is not None and 0 <= found <= _LARGEST else None


def truth(value: object) -> bool | None:
    """Yes or no in any known language; None for anything else."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower().removesuffix(".0")
    return True if text in YES else False if text in NO else None


@dataclass(frozen=True)
class Sheet:
    """A sheet's name and rows. `columns` maps our names to positions in this file."""

    name: str
    columns: Mapping[str, int]
    rows: Sequence[Sequence[object]] = field(default=())
    others: Sequence[str] = ()
    """Headers that are not ours, where they were kept."""

    @classmethod
    def of(cls, name: str, rows: Sequence[Sequence[object]], aliases: Mapping[str, Sequence[str]]) -> Sheet:
        """Find each column by any of its headers in the first row."""
        # Some versions prefix headers with the sheet's name: vInfoVMName is vmname.
        prefix = plain(name).removeprefix("tab")
        header = [plain(cell).removeprefix(prefix) for cell in rows[0]] if rows else []
        at = {
            column: header.index(known)
            for column, headers in aliases.items()
            for known in [next((plain(h) for h in headers if plain(h) in header), "")]
            if known
        }
        used = set(at.values())
        names = [str(cell).strip() for place, cell in enumerate(rows[0] if rows else ()) if place not in used]
        return cls(name, at, rows[1:], [name for name in names if name and name != "None"])

    def __iter__(self) -> Iterator[Row]:
        return (
            Row(self.columns, cells) for cells in self.rows if any(cell not in ("", None) for cell in cells)
        )


class Row:
    """One row: its cells by our names."""

    __slots__ = ("_cells", "_columns")

    def __init__(self, columns: Mapping[str, int], cells: Sequence[object]) -> None:
        self._columns, self._cells = columns, cells

    def cell(self, column: str) -> object:
        """The cell; None if the sheet lacks the column or the row ends before it."""
        at = self._columns.get(column)
        return self._cells[at] if at is not None and at < len(self._cells) else None

    def text(self, column: str) -> str:
        """The cell as text; empty without one."""
        value = self.cell(column)
        return "" if value is None else str(value).strip()

    def number(self, column: str) -> int | None:
        """The cell as an integer."""
        return number(self.cell(column))

    def truth(self, column: str) -> bool | None:
        """The cell as yes or no."""
        return truth(self.cell(column))


_MOST_CELLS = 2_000_000
"""Limit of cells in the used columns: more than 50,000 VMs have."""
_LONGEST_TEXT = 32_767
"""Excel's own limit for a cell, in characters."""

_READER = IsolatedModule(__name__, seconds=120)
_MEMORY_MB, _CPU_SECONDS = (300, 75), (8, 2)
"""Limits for reading: fixed, and per MB of the file. RVTools' own files need a third of it."""

Aliases = Mapping[str, Mapping[str, Sequence[str]]]
"""The columns to read of each sheet, with their possible headers."""


def sheet_key(name: str) -> str:
    """A sheet's name without case and RVTools' prefixes: `RVTools_tabvInfo` is `vinfo`."""
    return plain(name).removeprefix("rvtools").removeprefix("tab")


def sheet_names(path: Path) -> list[str]:
    """The names of a workbook's sheets. Raises InputError."""
    names: list[str] = _called(path, "_names", fix="Save it as .xlsx or .csv.")
    return names


def read_workbook(path: Path, aliases: Aliases) -> tuple[list[str], dict[str, Sheet]]:
    """The names of all sheets, and the requested ones with the columns that are used. Raises InputError."""
    document = _called(
        path, "_read", aliases, fix="Export all tabs to xlsx in RVTools (File, Export all to xlsx)."
    )
    sheets = {name: Sheet(name, columns, rows) for name, (columns, rows) in document["sheets"].items()}
    return document["names"], sheets


def read_first_sheet(
    path: Path, aliases: Mapping[str, Sequence[str]], needs: Sequence[Sequence[str]], title_rows: int
) -> tuple[Sheet, tuple[int, ...]] | None:
    """The first sheet whose headers have a column of each group in `needs`, and its rows' numbers in Excel;
    None without one.

    The headers are in one of the first `title_rows`. Raises InputError.
    """
    found = _called(path, "_read_first", aliases, needs, title_rows, fix="Save it as .xlsx or .csv.")
    if not found:
        return None
    columns, rows, numbers, others = found
    return Sheet(path.name, columns, rows, others), tuple(numbers)


def _called(path: Path, function: str, *arguments: object, fix: str) -> Any:
    try:
        with reading(path):
            path.open("rb").close()
            return _READER.call(function, str(path), *arguments)
    except IsolationError as error:
        raise InputError(f"{path} is not a readable Excel workbook ({error}).", fix=fix) from error


def _bounded(path: str) -> CalamineWorkbook:
    megabytes = Path(path).stat().st_size / 1_000_000
    memory, seconds = (always + each * megabytes for always, each in (_MEMORY_MB, _CPU_SECONDS))
    bound(memory_mb=memory, cpu_seconds=seconds)
    return CalamineWorkbook.from_path(path)


def _names(path: str) -> list[str]:
    return list(_bounded(path).sheet_names)


def _read(path: str, aliases: Aliases) -> dict[str, Any]:
    book = _bounded(path)
    present = {sheet_key(name): name for name in book.sheet_names}
    left, sheets = _MOST_CELLS, {}
    for name, wanted in aliases.items():
        found = present.get(plain(name))
        if found is None:
            continue
        rows = enumerate(book.get_sheet_by_name(found).iter_rows(), start=1)
        _, header = next(rows, (1, []))
        columns, kept, _ = _kept(rows, Sheet.of(name, [header], wanted).columns, left)
        left -= len(kept) * (len(columns) or 1)
        sheets[name] = columns, kept
    return {"names": list(book.sheet_names), "sheets": sheets}


def _read_first(
    path: str, aliases: Mapping[str, Sequence[str]], needs: Sequence[Sequence[str]], title_rows: int
) -> Any:
    book = _bounded(path)
    for name in book.sheet_names:
        rows = enumerate(book.get_sheet_by_name(name).iter_rows(), start=1)
        for _, first in islice(rows, title_rows):
            sheet = Sheet.of("", [first], aliases)
            if all(any(column in sheet.columns for column in group) for group in needs):
                return *_kept(rows, sheet.columns, _MOST_CELLS), list(sheet.others)
    return None


def _kept(
    rows: Iterator[tuple[int, Sequence[object]]], columns: Mapping[str, int], most: int
) -> tuple[dict[str, int], list[list[object]], list[int]]:
    """The used columns, by their new positions, the rows with only these, and the rows' numbers."""
    used = sorted(set(columns.values()))
    kept: list[list[object]] = []
    numbers: list[int] = []
    for number, row in rows:
        cells = [row[at] if at < len(row) else None for at in used]
        if all(cell in ("", None) for cell in cells):
            continue
        kept.append([_plain_cell(cell) for cell in cells])
        numbers.append(number)
        if len(kept) * (len(used) or 1) > most:
            raise ValueError(f"its sheets have more than {_MOST_CELLS:,} cells to read")
    return {column: used.index(at) for column, at in columns.items()}, kept, numbers


def _plain_cell(cell: object) -> object:
    """A JSON value: dates and times become text."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    text = str(cell)
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a cell in it has {len(text):,} characters, more than Excel allows")
    return text
