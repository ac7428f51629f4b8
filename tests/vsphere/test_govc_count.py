"""The check of the lab's fleet against an independent count: govc reads, the conditions are plain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.estate.build import document
from tests.support.cli import vnuma
from tests.support.site import write_inventory
from vnuma.lab.program import find_go

ROOT = Path(__file__).parents[2]
FLEET = {"name": "counted", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": 64, "vms": 1100}}


@pytest.fixture(scope="session")
def govc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VMware's govc, built from the module that tools/govc pins; Go keeps what it compiled."""
    go = find_go()
    assert go is not None, "Go builds the lab and govc"
    program = tmp_path_factory.mktemp("govc") / "govc"
    subprocess.run(
        [go.program, "build", "-o", program, "github.com/vmware/govmomi/govc"],
        cwd=ROOT / "tools" / "govc",
        check=True,
    )
    return program


@pytest.mark.long
def test_govc_counts_what_the_check_finds(lab: LabFactory, govc: Path, tmp_path: Path) -> None:
    """Ten rules, each on as many VMs or hosts as an independent program counts."""
    running = lab(FLEET)
    end = running.vcenter
    environment = {
        **os.environ,
        "GOVC_URL": f"https://{end.host}:{end.port}/sdk",
        "GOVC_USERNAME": end.user,
        "GOVC_PASSWORD": end.password,
        "GOVC_TLS_CA_CERTS": str(end.ca_file),
        "GOVC_PERSIST_SESSION": "false",
        "GOMAXPROCS": "2",
    }
    counted = subprocess.run(
        [sys.executable, "-m", "tools.count_findings", "--govc", govc],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    wanted = json.loads(counted.stdout)
    ran = vnuma("check", "--all", "-i", write_inventory(tmp_path, running), "--format", "json")
    objects: dict[str, set[str]] = {rule: set() for rule in wanted}
    for item in document(ran.out)["findings"]:
        if item["rule"] in objects:
            objects[item["rule"]].add(item["object"]["key"])
    assert {rule: len(found) for rule, found in objects.items()} == wanted
    assert len(wanted) == 10
    assert all(wanted.values())
