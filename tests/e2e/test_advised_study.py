"""From advice to a measurement: the file that `vnuma advise` writes is planned and run unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.cli import vnuma, vnuma_here
from tests.support.looking import settings_now
from tests.support.site import SMALL, write_inventory

SMALLER = {name: SMALL[name] for name in ("design", "workload", "dataset", "quiet", "power", "limits")}


@pytest.mark.long
def test_the_advised_study_is_planned_and_measures_what_was_advised(tmp_path: Path, lab: LabFactory) -> None:
    """For the VM on its own host: every arm is effective with the nodes that the advice named.

    Only its size is changed for the run: one block of small joins.
    """
    running = lab()
    inventory, file = write_inventory(tmp_path, running), tmp_path / "advised.yml"
    before = settings_now(running)
    advised = vnuma_here("advise", "--vm", "sql16", "-i", inventory, "--write", file, "--format", "json")
    assert advised.code == 0, advised.text
    planned = vnuma_here("plan", file, "-i", inventory)
    assert planned.code == 0, planned.text

    study = yaml.safe_load(file.read_text(encoding="utf-8"))
    stated = {arm["topology"]: arm["vnuma_nodes"] for arm in study["arms"]}
    nodes = {one["topology"]: one["vnuma_nodes"] for one in json.loads(advised.out)["candidates"]}
    assert len(stated) > 1
    assert stated.items() <= nodes.items()
    file.write_text(json.dumps(study | SMALLER), encoding="utf-8")
    ran = vnuma("run", file, "-i", inventory)

    assert ran.code == 0, ran.text
    assert settings_now(running) == before
