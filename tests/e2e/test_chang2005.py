"""The shipped study of network calls, shrunk, on the scenarios whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import LabFactory
from tests.support.cli import in_json, vnuma
from tests.support.looking import settings_now
from tests.support.site import SMALL, write_inventory

STUDY = Path(__file__).resolve().parents[2] / "studies" / "chang2005.yml"


WHOLE_S = 3000
"""Of the study as it is shipped, on a busy machine; alone it takes a few minutes."""


def shipped() -> dict[str, Any]:
    """The study file with a lab's deadlines, and nobody waited for to be quiet; all else as it is."""
    study: dict[str, Any] = YAML(typ="safe").load(STUDY.read_text(encoding="utf-8"))
    return study | {"quiet": {"for_s": 0}, "power": SMALL["power"]}


def at_twenty(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each arm's no-op calls from 20 connections gave."""
    noop = next(analysis for analysis in document["analyses"] if analysis["form"] == "noop")
    size = next(size for size in noop["sizes"] if size["size"] == 20)
    return {arm["arm"]: arm for arm in size["arms"]}


@pytest.mark.long
def test_the_whole_study_finds_that_sixteen_ways_answer_less_than_half_of_four(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Every cell valid; 4-way more than twice 16-way at 20 connections; negative scaling marked."""
    running = lab("chang2005")
    before = settings_now(running)
    study = tmp_path / "chang2005.yml"
    study.write_text(json.dumps(shipped()), encoding="utf-8")

    ran = vnuma("run", study, "-i", write_inventory(tmp_path, running), timeout_s=WHOLE_S)

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
    document = in_json("results", "latest")
    assert [one["attempts"] for one in document["attempts_not_counted"] if one["attempts"]] == []
    verdicts = {arm["arm"]: arm["verdict"] for arm in document["analyses"][0]["arms"]}
    assert verdicts["16-way"] == verdicts["8-way"] == verdicts["1-way"] == "slower"
    arms = at_twenty(document)
    assert arms["4-way"]["median"] > 2 * arms["16-way"]["median"]
    assert arms["16-way"]["verdict"] == "slower"
    (curve,) = [
        one
        for one in document["scaling"]
        if (one["form"], one["over"], one["at"]) == ("noop", "vCPUs", "20 connections")
    ]
    assert [vcpus for vcpus, _rate in curve["points"]] == [1, 2, 4, 8, 16]
    assert curve["negative"] == [8, 16]
