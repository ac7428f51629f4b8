"""A run that ends when it knows enough, and an archive of it that says so elsewhere."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import in_json, vnuma, vnuma_here
from tests.support.site import write_inventory, write_study


@pytest.mark.long
def test_a_play_ends_by_its_precision_and_its_archive_is_enough_to_do_it_again(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first look every half-width is narrow: the blocks left are not run, and no cell is missing.

    Somebody with the archive alone gets the same figures, and a study file that is planned as it was.
    """
    running = lab()
    inventory = write_inventory(tmp_path, running)
    study = write_study(
        tmp_path,
        reference="1x16",
        arms=["1x16", "8x2"],
        design={
            "a_a": False,
            "sentinel": False,
            "warmups": 0,
            "iterations": 1,
            "precision": "90%",
            "max_blocks": 9,
        },
        workload={"sizes": [20], "forms": ["server"]},
    )
    document = json.loads(study.read_text())
    del document["design"]["blocks"]  # a precision replaces it
    study.write_text(json.dumps(document))

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 0, ran.text
    document = in_json("results", "small.1")
    (primary,) = (item for item in document["analyses"] if item["primary"])
    assert (primary["blocks"], primary["missing_cells"]) == (8, [])
    assert primary["ended_by_rule"].startswith("precise: after 8 blocks")

    archive = tmp_path / "small.zip"
    assert vnuma_here("export", "small.1", "-o", archive).code == 0
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path / "elsewhere"))
    read = vnuma_here("results", archive, "--format", "json")
    assert json.loads(read.out) == document
    with zipfile.ZipFile(archive) as opened:
        again = tmp_path / "again.yml"
        again.write_bytes(opened.read("study.yml"))
    planned = vnuma_here("plan", again, "-i", inventory)
    assert planned.code == 0, planned.text
