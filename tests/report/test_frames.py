"""`vnuma.open`: a run's tables as frames, the same figures as the JSON document and the CSV."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import vnuma
from tests.report.build import store_of
from tests.report.conftest import ARCHIVED
from tools import notebook
from vnuma.errors import EnvironmentProblem
from vnuma.frames import RunTables
from vnuma.report.model.model import LoadedRun
from vnuma.store.open import Store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    """A run with a repeated attempt and a missing cell, opened by its store's address."""
    path: Path = tmp_path_factory.mktemp("frames") / "vnuma.db"
    store_of(path, ARCHIVED)
    return vnuma.open("quick.1", store=f"sqlite:///{path}")


def test_pandas_finds_the_medians_in_the_samples(run: RunTables) -> None:
    """The table's medians, recomputed by another library from the samples marked as analysed."""
    samples = run.samples()
    counted = samples[(samples["attempt_outcome"] == "valid") & ~samples["warmup"] & samples["reason"].isna()]
    boots = counted.groupby(["arm", "label", "block"])["elapsed_ms"].median()
    medians = boots.groupby("arm").median()
    table = run.results()
    shown = table[table["primary"] & (table["size"] == "500")].set_index("arm")["median_ms"]

    assert len(shown) == 5
    assert medians[shown.index].to_dict() == pytest.approx(shown.to_dict())


def test_every_table_has_its_declared_types(run: RunTables) -> None:
    """A time is a time with its zone, a yes or no a truth, a number a number."""
    types = {name: str(field) for name, field in run.samples().dtypes.items()}

    assert types["at"].startswith("datetime64")
    assert types["at"].endswith("UTC]")
    assert (types["warmup"], types["elapsed_ms"], types["block"]) == ("bool", "float64", "int64")
    assert {"wait_type", "share_percent"} <= set(run.waits().columns)
    assert "figure" in run.figures().columns


def test_what_is_simulated_says_so(run: RunTables) -> None:
    """In each row, and where a notebook shows the object."""
    assert run.simulated is not None
    assert run.samples()["simulated"].all()
    assert "simulated" in repr(run)


def test_an_archive_opens_as_its_run(exported: tuple[Store, LoadedRun, Path]) -> None:
    """The same tables as from the store, with the file's name."""
    store, _, path = exported
    ours, theirs = vnuma.open(str(path)), vnuma.open("quick.1", store=f"sqlite:///{store.place.path}")

    assert ours.samples().equals(theirs.samples())
    assert f"from {path.name}" in repr(ours)


def test_without_pandas_the_error_says_what_helps(run: RunTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what to install."""
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(EnvironmentProblem, match="pip install pandas pyarrow"):
        run.samples()


@pytest.mark.parametrize("table", ["samples", "results"])
def test_without_pyarrow_the_error_says_what_helps(
    run: RunTables, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames and Arrow tables need it; it names what to install."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(EnvironmentProblem) as told:
        run.arrow(table)

    assert "pip install pyarrow" in (told.value.fix or "")


def test_the_notebook_shows_what_its_code_gives(tmp_path: Path) -> None:
    """python -m tools.notebook"""
    page = json.loads(notebook.PAGE.read_text(encoding="utf-8"))

    assert notebook.executed(json.loads(json.dumps(page)), notebook.store_url(tmp_path)) == page
