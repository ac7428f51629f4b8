"""Write docs/reference/rvtools.md from the headers and words that the reader of RVTools exports knows.

python tools/rvtools_doc.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from vnuma.estate.rvtools import COLUMNS, WORTH_NAMING
from vnuma.estate.workbook import NO, YES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "rvtools.md"

HEAD = """# RVTools exports

Written by `tools/rvtools_doc.py` from what `vnuma check --rvtools FILE.xlsx` knows. It reads six sheets
of an export (File, Export all to xlsx). Versions of RVTools, and its command line, gave some columns
different headers; each column is recognised by any of these, in any case, with or without blanks and
signs, and with or without the sheet's name in front (`vInfoVMName`, sheet `tabvInfo`). An export without
vInfo, or with neither VM, CPUs nor Memory in it, is refused. Other missing sheets, and missing columns
marked *, are listed as not readable; rules that depend on them are not evaluated.

| sheet | known headers of each column |
|---|---|"""

TAIL = """
Excel writes numbers and truth values as text in the language of whoever saved the file last. Thousands
may be separated by a point, comma, blank (also a narrow or no-break one) or apostrophe, decimals by a
point or comma: `65.536`, `65 536` and `65,536` are the same, `4,0` is 4. Yes is one of {yes}; no is one
of {no}. A cell in another language is unknown; it never counts as no.

`Current CPU power man. policy` is not read: it is not the host's power policy. Without `Host Power
Policy`, rule M04 is not evaluated.

The source in `--history` is the file's name: keep it the same from one export to the next.
"""


def page() -> str:
    """The whole page."""
    rows = [f"| {sheet} | {'; '.join(_columns(sheet))} |" for sheet in COLUMNS]
    return "\n".join([HEAD, *rows, TAIL.format(yes=_words(YES), no=_words(NO))])


def _columns(sheet: str) -> Iterable[str]:
    for key, headers in COLUMNS[sheet].items():
        mark = "*" if key in WORTH_NAMING.get(sheet, ()) else ""
        yield " or ".join(f"`{header}`" for header in headers) + mark


def _words(known: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(known) if not word.isdigit())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
