"""One sheet of an export as rows by column, whatever the headers in its version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_NOT_WORD = re.compile(r"[^a-z0-9#%]")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([.,' \u00a0\u202f\u2019]\d{3})+")

_QUANTITY = re.compile(r"([-+]?\d[\d.,' \u00a0\u202f\u2019]*)\s*([a-zA-Z%]{0,6})")

_LONGEST_NUMBER = 18
"""More characters than any number in an export has."""
_LARGEST = 10**12
"""More than any count in an export, including memory in MB."""

YES = {
    "true",
    "1",
    "yes",
    "wahr",
    "ja",
    "vrai",
    "oui",
    "verdadero",
    "si",
    "sí",
    "vero",
    "waar",
    "sant",
    "prawda",
}
NO = {"false", "0", "no", "falsch", "nein", "faux", "non", "falso", "onwaar", "nee", "falskt", "fałsz"}
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

    @classmethod
    def of(cls, name: str, rows: Sequence[Sequence[object]], aliases: Mapping[str, Sequence[str]]) -> Sheet:
        """Find each column by any of its headers in the first row."""
        header = [_header(name, cell) for cell in rows[0]] if rows else []
        at = {
            column: header.index(known)
            for column, headers in aliases.items()
            for known in [next((plain(h) for h in headers if plain(h) in header), "")]
            if known
        }
        return cls(name, at, rows[1:])

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


def _header(sheet: str, cell: object) -> str:
    """A header without the sheet's name, which some versions prefix: vInfoVMName is vmname."""
    return plain(cell).removeprefix(plain(sheet).removeprefix("tab"))
