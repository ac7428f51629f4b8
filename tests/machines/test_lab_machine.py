"""`studies/closson2009.yml` on the lab's Linux machine: an effect, none, invalid cells, settings restored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.cli import vnuma
from tests.support.site import ask_machine, write_machines
from vnuma.assets import asset

PUBLISHED = 0.30021 / 0.244703
"""Seconds from the other socket over those from the own one (Closson 2009)."""


ONE_BLOCK = {"blocks": 1, "a_a": False, "warmups": 0, "iterations": 1}


def shipped() -> dict[str, Any]:
    """The study file, on the lab's machine."""
    said: dict[str, Any] = yaml.safe_load(asset("studies/closson2009.yml").read_text(encoding="utf-8"))
    return said | {"vm": "xeon5500"}


def shrunk() -> dict[str, Any]:
    """Its first two arms in one block, one read of each form, one attempt a cell."""
    said = shipped()
    said["design"] |= ONE_BLOCK
    return said | {"arms": said["arms"][:2], "limits": {"attempts_per_cell": 1}}


def written(folder: Path, said: dict[str, Any]) -> Path:
    """A study as a file."""
    path = folder / "closson2009.yml"
    path.write_text(yaml.safe_dump(said), encoding="utf-8")
    return path


def results() -> dict[str, Any]:
    """The newest run's results as JSON."""
    document: dict[str, Any] = json.loads(vnuma("results", "latest", "--format", "json").out)
    return document


def arms(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Each arm's line, by form and arm."""
    return {
        (analysis["form"], arm["arm"]): arm
        for analysis in document["analyses"]
        if analysis["metric"] == "value"
        for arm in analysis["arms"]
    }


@pytest.mark.long
def test_a_block_of_the_shipped_study_has_the_published_figures(tmp_path: Path, lab: LabFactory) -> None:
    """6.0 and 4.9 GB/s next to ours, all marked simulated; nothing remains on the machine."""
    running = lab("closson2009")

    ran = vnuma("run", written(tmp_path, shrunk()), "-i", write_machines(tmp_path, running))

    assert ran.code == 0, ran.text
    beside = {
        row["arm"]: (row["published"], round(row["measured"], 1)) for row in results()["published"]["rows"]
    }
    assert beside == {"local": (6.016, 6.0), "remote": (4.904, 4.9)}
    assert "vnuma" not in ask_machine(running, "ls /var/tmp /dev/shm")
    assert vnuma("report", "latest", "--output", tmp_path / "page.html").code == 0


@pytest.mark.long
def test_a_file_that_another_program_read_first_is_no_measurement(tmp_path: Path, lab: LabFactory) -> None:
    """No cell is valid, the pages say why, and the run ends with code 6."""
    machines = write_machines(tmp_path, lab("closson2009-others"))

    ran = vnuma("run", written(tmp_path, shrunk()), "-i", machines)

    assert ran.code == 6
    (vm,) = results()["attempts_not_counted"]
    assert {one["reason"] for one in vm["attempts"]} == {"placement_not_proven"}


@pytest.mark.long
def test_the_whole_study_finds_what_was_published(tmp_path: Path, lab: LabFactory) -> None:
    """Remote pages cost the published factor in both busy forms, interleaved half, less with rests."""
    machines = write_machines(tmp_path, lab("closson2009"))

    ran = vnuma("run", written(tmp_path, shipped()), "-i", machines)
    found = arms(results())

    assert ran.code == 0, ran.text
    assert {arm["verdict"] for arm in found.values()} == {"slower"}
    for form in ("single", "saturated"):
        assert 1 / found[form, "remote"]["ratio"] == pytest.approx(PUBLISHED, rel=0.01)
        assert 1 / found[form, "interleaved"]["ratio"] == pytest.approx((1 + PUBLISHED) / 2, rel=0.01)
        assert found[form, "depleted"]["ratio"] == pytest.approx(found[form, "remote"]["ratio"], rel=0.03)
    assert found["unsaturated", "remote"]["ratio"] == pytest.approx(0.95, rel=0.01)
