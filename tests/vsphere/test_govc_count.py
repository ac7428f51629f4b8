"""The check of the lab's fleet against an independent count: govc reads, jq holds the conditions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.estate.build import document
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tests.vsphere.support import govc_environment

ROOT = Path(__file__).parents[2]
FLEET = {"name": "counted", "esxi": {"version": "8.0.2"}, "fleet": {"hosts": 64, "vms": 1100}}


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
    counting = [sys.executable, "-m", "tools.count_findings"]
    counting += [f"--{name}={program}" for name, program in programs.items()]
    ran = subprocess.run(
        counting, cwd=ROOT, env=govc_environment(lab), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {rule: set(objects) for rule, objects in document(ran.stdout).items()}
