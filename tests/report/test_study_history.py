"""One study over months and hosts: its runs in order, and what changed around them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.report.build import Story, store_of, study_text
from tests.report.pages import Outline
from tests.report.serving import asked, serving
from tests.support.cli import vnuma_here
from vnuma.errors import InputError
from vnuma.report.tables.history import study_history
from vnuma.store.open import Store

TEXT = study_text(sizes="500", forms="client")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two runs on ESXi 6.0, one after an update."""
    releases = ("6.0.0 build 5050593", "6.0.0 build 5050593", "6.0.0 build 9239799")
    return store_of(tmp_path / "vnuma.db", *(Story(text=TEXT, esxi=release) for release in releases))


def test_a_change_around_a_run_is_marked(store: Store) -> None:
    """Only where it happened; each run has its differences."""
    table = study_history(store, "quick")
    esxi = table.headings.index("ESXi")

    assert [row[0].split()[0] for row in table.rows] == ["quick.1", "quick.2", "quick.3"]
    assert [row[esxi].endswith("*") for row in table.rows] == [False, False, True]
    assert [row[esxi - 1] for row in table.rows] == ["esx01"] * 3
    assert all(row[table.headings.index("4x4")].count("%") for row in table.rows)


def test_verb_and_page_show_the_same(store: Store) -> None:
    """As a table for a spreadsheet, and in a browser; an unknown study is an error of input."""
    url = f"sqlite:///{store.place.path}"
    shown = vnuma_here("results", "--history", "quick", "--format", "csv", "--store", url)
    with serving(store) as address:
        page, unknown = (asked(address, f"/studies/{name}") for name in ("quick", "nix"))
    rows = Outline(page.text).rows

    assert (page.status, unknown.status) == (200, 404)
    assert [[cell.lstrip("'") for cell in row] for row in csv.reader(io.StringIO(shown.out))] == rows
    assert page.text.count("<title>SIMULATED") == 1
    with pytest.raises(InputError):
        study_history(store, "nix")


@pytest.mark.parametrize("named", ["latest", "quick.2"])
def test_a_run_names_its_study(store: Store, named: str) -> None:
    """`vnuma results --history` alone shows that of the newest run."""
    assert study_history(store, named) == study_history(store, "quick")
