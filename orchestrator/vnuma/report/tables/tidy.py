"""Tidy tables: one line per value, unrounded; an empty field is missing, never zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.vm.plain_text import escaped, spreadsheet_safe

Kind = Literal["text", "whole", "number", "yes/no", "time"]
Row = Mapping[str, object]


@dataclass(frozen=True)
class Column:
    """A column's content and unit. An empty field is unknown or missing."""

    name: str
    kind: Kind
    unit: str
    what: str


def tidy_csv(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """Comma-separated, below a header line."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [column.name for column in columns], lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


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


def field(value: object) -> object:
    """A CSV value: true and false in lower case, empty for None, without formulas and control characters."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return escaped(spreadsheet_safe(value))
    return value
