"""studies/shea2012.yml from end to end: an effect, none, invalid cells, a search, a dead engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import LabFactory
from tests.support.cli import command, vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.site import SMALL, write_inventory
from tools.soak.points import Stage
from tools.soak.watch import Watch
from vnuma.assets import asset
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.inventory import read_targets
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance import tcp_ports

STUDY = "shea2012.yml"
WHOLE: dict[str, Any] = {"blocks": 6, "a_a": False, "warmups": 0, "iterations": 1}
"""Every row and every stream of the shipped study, in the fewest boots that words need."""
SHRUNK = {"scale_factor": 0.001, "queries_per_stream": 1}


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
    target = read_targets(write_inventory(folder, running), ("sql16",))["sql16"]
    with connect(sql_server(target)) as connection:
        return tcp_ports.read_settings(connection).ports


def verdict(folder: Path, running: LabHandle, path: Path) -> dict[str, Any]:
    """Run it, and give the remote arm's line of the results; VM and ports are as they were."""
    before = settings_now(running), port_setting(folder, running)
    ran = vnuma("run", path, "-i", write_inventory(folder, running))
    assert ran.code == 0, ran.text
    assert (settings_now(running), port_setting(folder, running)) == before
    document = json.loads(vnuma_here("results", "latest", "--format", "json").out)
    arm: dict[str, Any] = document["analyses"][0]["arms"][0]
    return arm


@pytest.mark.long
def test_remote_pages_are_slower_by_the_published_ratio_and_both_stand_in_the_report(
    tmp_path: Path, lab: LabFactory
) -> None:
    """50 million rows and 32 streams: 5% fewer queries an hour."""
    running, path = lab("shea2012"), study(tmp_path, **WHOLE)
    planned = vnuma_here("plan", path, "-i", write_inventory(tmp_path, running)).out
    arm = verdict(tmp_path, running, path)

    assert "Distinguishable inside the guest: local, remote" in planned
    assert "SQL Server: TcpPort in its registry" in planned
    assert arm["verdict"] == "slower"
    assert 1 / arm["ratio"] == pytest.approx(1.05, abs=0.01)
    table = vnuma_here("results", "latest", "--all").out
    assert "Shea 2012" in table
    assert vnuma("report", "latest", cwd=tmp_path).code == 0
    page = next((tmp_path / "reports").glob("*.html")).read_text(encoding="utf-8")
    for words in ("Shea 2012", "4.8", "cross-node cost matrix", "their own memory node 0"):
        assert words in page
    assert "gave the guest the same number of vNUMA nodes" not in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("named", "tried"),
    [
        ({"sizes": [1, 2]}, [1, 2]),
        ({}, [1, 2, 4, 8, 16, 32, 64]),
    ],
    ids=["short", "whole"],
)
def test_a_search_says_that_its_largest_difference_is_a_maximum(
    tmp_path: Path, lab: LabFactory, named: dict[str, Any], tried: list[int]
) -> None:
    """Each number of streams is measured; terminal, page and JSON carry the caution."""
    running = lab("shea2012")
    path = study(tmp_path, SHRUNK, blocks=1, a_a=False, iterations=1, warmups=0)
    said = json.loads(path.read_text(encoding="utf-8"))
    del said["workload"]["sizes"]
    said["workload"] |= {"streams": "search"} | named
    path.write_text(json.dumps(said), encoding="utf-8")

    ran = vnuma("run", path, "-i", write_inventory(tmp_path, running))

    assert ran.code == 0, ran.text
    as_json = vnuma_here("results", "latest", "--format", "json").out
    analysis = json.loads(as_json)["analyses"][0]
    assert [measured["size"] for measured in analysis["sizes"]] == tried
    assert vnuma("report", "latest", cwd=tmp_path).code == 0
    page = next((tmp_path / "reports").glob("*.html")).read_text(encoding="utf-8")
    for shown in (vnuma_here("results", "latest", "--all").out, as_json, page):
        assert "maximum over a search" in " ".join(shown.split())


@pytest.mark.parametrize("way", ["restore", pytest.param("resume", marks=pytest.mark.long)])
def test_after_kill_9_of_the_engine_the_ports_come_back(
    tmp_path: Path, lab: LabFactory, vnuma_home: Path, way: str
) -> None:
    """Killed while streams run over mapped ports; restored by `vnuma restore`, or by the resumed run."""
    running = lab("shea2012")
    before = settings_now(running), port_setting(tmp_path, running)
    path = study(tmp_path, SHRUNK | {"sizes": [2]}, blocks=1, a_a=False, iterations=20, warmups=0)
    inventory = write_inventory(tmp_path, running)
    with subprocess.Popen(
        command("run", path, "-i", inventory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        watch = Watch(running, vnuma_home, "shea2012.1")
        assert watch.begins(Stage.QUERY, lambda: process.poll() is not None)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=120)
    one, two = running.vms["sql16"].node_ports
    assert port_setting(tmp_path, running) == f"{before[1]},{one}[0x1],{two}[0x2]"

    ran = vnuma("restore") if way == "restore" else vnuma("run", "--resume", "shea2012.1")

    assert ran.code == 0, ran.text
    assert (settings_now(running), port_setting(tmp_path, running)) == before
    assert "VMs not at baseline: 0" in vnuma_here("status").out
