"""A reader who was not there has the archive alone: figures, study, and a new run to hold against it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.site import write_inventory, write_study
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study


def numbers(document: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON document with its place in it."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers(value, f"{place}.{key}")
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from numbers(value, f"{place}[{index}]")
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield place, document


def measured(folder: Path, lab: LabFactory) -> Path:
    """The archive of a run that somebody else made: two arms, two blocks, one size."""
    inventory = write_inventory(folder, lab())
    work = {"sizes": [100], "forms": ["server"]}
    study = write_study(folder, workload=work, design={"blocks": 2, "seed": 5})
    ran = vnuma("run", study, "-i", inventory)
    assert ran.code == 0, ran.text
    exported = vnuma("export", "small.1", "-o", folder / "small.zip")
    assert exported.code == 0, exported.text
    return folder / "small.zip"


def read_study(path: Path) -> Study:
    """A study file as the product reads it."""
    return parse_study(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.long
def test_a_reader_with_the_archive_alone_gets_the_figures_and_measures_them_again(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """README.md's own steps in an empty home: report, unpack, plan, run on a lab, compare."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    archive = measured(theirs, lab)
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "home of the reader"))

    assert vnuma("report", archive, "-o", ours / "report.html", cwd=ours).code == 0
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(ours)
    before = dict(numbers(json.loads((ours / "results.json").read_text())))
    again = dict(numbers(json.loads(vnuma("results", archive, "--format", "json").out)))
    assert before.keys() == again.keys()
    assert [place for place in before if before[place] != again[place]] == []
    assert len(before) > 100
    assert read_study(ours / "study.yml") == read_study(theirs / "small.yml")

    up = vnuma("lab", "up", "paper", "--time-scale", "0")
    assert up.code == 0, up.text
    try:
        planned = vnuma("plan", "study.yml", cwd=ours)
        assert planned.code == 0, planned.text
        ran = vnuma("run", "study.yml", cwd=ours)
        assert ran.code == 0, ran.text
    finally:
        vnuma("lab", "down")
    compared = vnuma("compare", archive, "small.1", "--format", "json", cwd=ours)
    assert compared.code == 0, compared.text
    (pair,) = json.loads(compared.out)["vms"]
    assert {change["arm"] for change in pair["arms"]} == {"1x16", "4x4"}
    assert all(change["own"]["ratio"] for change in pair["arms"])
