"""`vnuma.open`: a run's tables as frames, the same figures as the JSON document and the CSV."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
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
    assert {"figure"} <= set(run.figures().columns)


def test_what_is_simulated_says_so(run: RunTables) -> None:
    """In each row, and where a notebook shows the object."""
    assert run.simulated is not None
    assert run.samples()["simulated"].all()
    assert repr(run).count("simulated") == 1


def test_an_archive_opens_as_its_run(exported: tuple[Store, LoadedRun, Path]) -> None:
    """The same tables as from the store, with the file's name."""
    store, _, path = exported
    ours, theirs = vnuma.open(str(path)), vnuma.open("quick.1", store=f"sqlite:///{store.place.path}")

    assert ours.samples().equals(theirs.samples())
    assert [repr(one).count(f"from {path.name}") for one in (ours, theirs)] == [1, 0]


@pytest.mark.parametrize(
    ("missing", "read"),
    [
        ("pandas", lambda run: run.samples()),
        ("pyarrow", lambda run: run.arrow("samples")),
        ("pyarrow", lambda run: run.arrow("results")),
    ],
)
def test_without_a_package_the_error_says_what_helps(
    run: RunTables, monkeypatch: pytest.MonkeyPatch, missing: str, read: Callable[[RunTables], object]
) -> None:
    """Frames and Arrow tables need packages that are not installed by default."""
    for name in (missing, f"{missing}.parquet"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(EnvironmentProblem) as told:
        read(run)

    assert re.search(rf"pip install .*{missing}", str(told.value))


def test_the_notebook_shows_what_its_code_gives(tmp_path: Path) -> None:
    """python -m tools.notebook"""
    page = json.loads(notebook.PAGE.read_text(encoding="utf-8"))

    assert notebook.executed(json.loads(json.dumps(page)), notebook.store_url(tmp_path)) == page
