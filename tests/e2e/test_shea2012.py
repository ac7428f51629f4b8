"""studies/shea2012.yml from end to end: an effect, none, invalid cells, a search, a dead engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.cli import in_json, vnuma
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import SMALL, write_inventory
from vnuma.assets import asset
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import Inventory
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import server_configuration

STUDY = "shea2012.yml"
WHOLE: dict[str, Any] = {"blocks": 6, "a_a": False, "warmups": 0, "iterations": 1}
"""Every row and every stream of the shipped study, in the fewest boots that words need."""


def study(folder: Path, workload: dict[str, Any] | None = None, **design: Any) -> Path:
    """The shipped study with the deadlines of a lab, and without the wait for a quiet guest."""
    said = yaml.safe_load(asset(f"studies/{STUDY}").read_text(encoding="utf-8"))
    said["design"] |= design
    said["workload"] |= workload or {}
    said |= {"quiet": {"for_s": 0}, "power": SMALL["power"], "limits": SMALL["limits"]}
    path = folder / STUDY
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


def port_setting(folder: Path, running: LabHandle) -> str | None:
    """SQL Server's TcpPort in its registry."""
    target = Inventory(write_inventory(folder, running)).targets(("sql16",))["sql16"]
    with connect(sql_server(target)) as connection:
        return server_configuration.read_settings(connection).ports


def verdict(folder: Path, running: LabHandle, path: Path) -> dict[str, Any]:
    """Run it, and give the remote arm's line of the results; VM and ports are as they were."""
    before = settings_now(running), port_setting(folder, running)
    ran = vnuma("run", path, "-i", write_inventory(folder, running))
    assert ran.code == 0, ran.text
    assert (settings_now(running), port_setting(folder, running)) == before
    document = in_json("results", "latest")
    arm: dict[str, Any] = document["analyses"][0]["arms"][0]
    return arm


@pytest.mark.long
def test_remote_pages_are_slower_by_the_published_ratio_and_both_stand_in_the_report(
    tmp_path: Path, lab: LabFactory
) -> None:
    """50 million rows and 32 streams: 5% fewer queries an hour."""
    running, path = lab("shea2012"), study(tmp_path, **WHOLE)
    arm = verdict(tmp_path, running, path)

    assert arm["verdict"] == "slower"
    assert 1 / arm["ratio"] == pytest.approx(1.05, abs=0.01)
    assert vnuma("report", "latest", cwd=tmp_path).code == 0
    page = next((tmp_path / "reports").glob("*.html")).read_text(encoding="utf-8")
    assert ("Shea 2012" in page, "gave the guest the same number of vNUMA nodes" in page) == (True, False)
