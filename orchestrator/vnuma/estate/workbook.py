"""Excel workbooks that somebody else wrote: read in a process of its own, within bounds of memory and time.

A workbook of 1 MB can describe billions of cells, which its reader makes room for before it returns one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from python_calamine import CalamineWorkbook

from vnuma.apart import Apart, ApartError, bound
from vnuma.errors import InputError
from vnuma.estate.sheet import Sheet, plain

_MOST_CELLS = 2_000_000
"""In the columns that are used: more than 50,000 VMs have."""
_LONGEST_TEXT = 32_767
"""In characters: Excel's own limit of a cell."""

_READER = Apart(__name__, seconds=120)
_MEMORY_MB, _CPU_SECONDS = (300, 75), (8, 2)
"""What reading may take: in any case, and for each MB of the file. RVTools' own need a third of it."""

Aliases = Mapping[str, Mapping[str, Sequence[str]]]
"""The columns that are read of each sheet, with the headers that each may have."""


@dataclass(frozen=True)
class Workbook:
    """What the file's sheets are called, and those that were asked for and are there."""

    names: tuple[str, ...]
    sheets: Mapping[str, Sheet]


def read_workbook(path: Path, aliases: Aliases) -> Workbook:
    """The sheets, with the columns that are used. Raises InputError."""
    try:
        with path.open("rb"):
            pass
        document = _READER.call("_read", str(path), aliases)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}).", fix="Check the name."
        ) from error
    except ApartError as error:
        raise InputError(
            f"{path} is not an Excel workbook that can be read ({error}).",
            fix="Export all tabs to xlsx in RVTools (File, Export all to xlsx).",
        ) from error
    sheets = {name: Sheet(name, columns, rows) for name, (columns, rows) in document["sheets"].items()}
    return Workbook(tuple(document["names"]), sheets)


def _read(path: str, aliases: Aliases) -> dict[str, Any]:
    megabytes = Path(path).stat().st_size / 1_000_000
    memory, seconds = (always + each * megabytes for always, each in (_MEMORY_MB, _CPU_SECONDS))
    bound(memory_mb=memory, cpu_seconds=seconds)
    book = CalamineWorkbook.from_path(path)
    present = {plain(name).removeprefix("rvtools").removeprefix("tab"): name for name in book.sheet_names}
    left, sheets = _MOST_CELLS, {}
    for name, wanted in aliases.items():
        found = present.get(plain(name))
        if found is None:
            continue
        rows = iter(book.get_sheet_by_name(found).iter_rows())
        columns = Sheet.of(name, [next(rows, [])], wanted).columns
        used = sorted(set(columns.values()))
        kept: list[list[object]] = []
        for cells in _cells(rows, used):
            left -= len(used) or 1
            if left < 0:
                raise ValueError(f"its sheets have more than {_MOST_CELLS:,} cells to read")
            kept.append(cells)
        sheets[name] = ({column: used.index(at) for column, at in columns.items()}, kept)
    return {"names": list(book.sheet_names), "sheets": sheets}


def _cells(rows: Iterator[Sequence[object]], used: Sequence[int]) -> Iterator[list[object]]:
    for row in rows:
        cells = [row[at] if at < len(row) else None for at in used]
        if any(cell not in ("", None) for cell in cells):
            yield [_plain_cell(cell) for cell in cells]


def _plain_cell(cell: object) -> object:
    """As JSON has it: dates and times become text."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    text = str(cell)
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a cell in it has {len(text):,} characters, more than Excel allows")
    return text
