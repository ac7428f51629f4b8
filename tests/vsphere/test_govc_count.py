"""The check of the lab's fleet against an independent count: govc reads, jq holds the conditions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.estate.build import document
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from vnuma.lab.program import find_go

ROOT = Path(__file__).parents[2]
FLEET = {"name": "counted", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": 64, "vms": 1100}}
PROGRAMS = {"govc": "github.com/vmware/govmomi/govc", "jq": "github.com/itchyny/gojq/cmd/gojq"}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """govc and a jq, built from the modules that tools/counting pins; Go keeps what it compiled."""
    go = find_go()
    assert go is not None, "Go builds the lab, govc and jq"
    folder = tmp_path_factory.mktemp("counting")
    for name, package in PROGRAMS.items():
        build = [str(go.program), "build", "-o", str(folder / name), package]
        subprocess.run(build, cwd=ROOT / "tools" / "counting", check=True)
    return {name: folder / name for name in PROGRAMS}


@pytest.mark.long
def test_govc_and_jq_count_what_the_check_finds(
    lab: LabFactory, programs: dict[str, Path], tmp_path: Path
) -> None:
    """Every rule that has a filter concerns the very objects that independent programs name."""
    running = lab(FLEET)
    wanted = _counted(running, programs)
    ran = vnuma_here("check", "--all", "-i", write_inventory(tmp_path, running), "--format", "json")
    found: dict[str, set[str]] = {}
    for item in document(ran.out)["findings"]:
        found.setdefault(item["rule"], set()).add(item["object"]["key"].rpartition("/")[2])
    assert len(wanted) >= 15
    assert all(wanted.values()), "a filter that names nothing counts nothing"
    assert {rule: found.get(rule, set()) for rule in wanted} == wanted
    assert found.keys() == wanted.keys(), "a rule that finds something in the fleet has a filter"


def _counted(lab: LabHandle, programs: dict[str, Path]) -> dict[str, set[str]]:
    """The objects by rule, from another process with nothing of the product in it."""
    end = lab.vcenter
    environment = {
        **os.environ,
        "GOVC_URL": f"https://{end.host}:{end.port}/sdk",
        "GOVC_USERNAME": end.user,
        "GOVC_PASSWORD": end.password,
        "GOVC_TLS_CA_CERTS": str(end.ca_file),
        "GOVC_PERSIST_SESSION": "false",
        "GOMAXPROCS": "2",
    }
    counting = [sys.executable, "-m", "tools.count_findings"]
    counting += [f"--{name}={program}" for name, program in programs.items()]
    ran = subprocess.run(counting, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return {rule: set(objects) for rule, objects in document(ran.stdout).items()}
