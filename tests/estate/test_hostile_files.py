"""Files that break readers: one sentence, exit 3, at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.estate.workbooks import export, rewrite, write
from vnuma.errors import InputError
from vnuma.estate.rvtools import read_rvtools
from vnuma.estate.workbook import number

SNAPSHOTS = {
    "deep": "[" * 100_000,
    "less deep": "[" * 500 + "]" * 500,
    "many digits": '{"schema": "vnuma/inventory/1", "estates": ' + "7" * 5_000 + "}",
    "format of another script": '{"schema": "vnuma/inventory/²", "estates": []}',
    "format of many digits": '{"schema": "vnuma/inventory/' + "7" * 5_000 + '", "estates": []}',
    "NaN": '{"schema": "vnuma/inventory/1", "estates": NaN}',
    "endless": '{"schema": "vnuma/inventory/1", "estates": 1e999}',
    "lone surrogate": r'{"schema": "vnuma/inventory/1", "estates": "\ud800"}',
    "a word": '{"schema": "vnuma/inventory/1", "estates": "all"}',
}


_FIRST = "xl/worksheets/sheet1.xml"
_FAR_CELL = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
WORKBOOKS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a far cell": (_FIRST, lambda sheet: sheet.replace(b"</sheetData>", _FAR_CELL)),
    "many rows": (
        _FIRST,
        lambda sheet: sheet.replace(
            b"</sheetData>", b"<row><c><v>1</v></c></row>" * 3_000_000 + b"</sheetData>"
        ),
    ),
    "endless text": (_FIRST, lambda sheet: sheet.replace(b"vm0", b"x" * 200_000_000)),
    "a long cell": (_FIRST, lambda sheet: sheet.replace(b"vm0", b"x" * 40_000)),
    "damaged XML": (_FIRST, lambda sheet: sheet.replace(b'r="A1"', b'r="0"')),
    "cut XML": (_FIRST, lambda sheet: sheet[: len(sheet) // 2]),
    "deep XML": (_FIRST, lambda sheet: b"<a>" * 1_000_000),
    "no sheet": (_FIRST, lambda _sheet: b""),
    "damaged workbook": ("xl/workbook.xml", lambda book: book[:-20]),
}


@pytest.mark.parametrize(("part", "change"), WORKBOOKS.values(), ids=WORKBOOKS)
def test_a_broken_workbook_costs_a_sentence(
    tmp_path: Path, part: str, change: Callable[[bytes], bytes]
) -> None:
    """Whatever it would take of memory and time, and whether or not its reader survives it."""
    path = rewrite(write(tmp_path / "export.xlsx", export()), part, change)
    with pytest.raises(InputError, match=r"export\.xlsx") as caught:
        read_rvtools(path)
    assert caught.value.fix


@pytest.mark.parametrize("count", [-16, -1, 10**9, 10**30, 1e300, "-16", "9" * 5_000])
def test_a_count_that_no_machine_has_is_named(tmp_path: Path, count: object) -> None:
    """A VM or host with it is left out, and said; the others are read."""
    sheets = export(vms=2, hosts=2)
    sheets["vInfo"][0]["CPUs"] = sheets["vHost"][0]["# CPU"] = sheets["vHost"][0]["# Cores"] = count
    sheets["vCPU"][1]["Sockets"] = sheets["vCPU"][1]["Cores p/s"] = count
    estate = read_rvtools(write(tmp_path / "export.xlsx", sheets))

    assert [vm.facts.name for vm in estate.vms] == ["vm1"]
    assert {"vm0", "esx0"} <= {item.name for item in estate.unseen}


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "inf", "nan", "1" + "0" * 5_000])
def test_an_endless_count_is_not_a_number(value: object) -> None:
    """A cell of a workbook may hold it."""
    assert number(value) is None
