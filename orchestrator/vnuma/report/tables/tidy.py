"""Tidy tables: one line a value, nothing rounded; an empty field is missing, never zero."""

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
    """A column: what it holds, in which unit. An empty field is: not known, or missing."""

    name: str
    kind: Kind
    unit: str
    what: str


def tidy_csv(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """Comma-separated, under a line of names."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [column.name for column in columns], lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows({name: field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def described(heading: str, intro: str, columns: Sequence[Column]) -> str:
    """The columns for people: a part of the data dictionary."""
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
    """A value as CSV holds it: true and false in small letters, nothing for None, no formula, no controls."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return escaped(spreadsheet_safe(value))
    return value
