"""The fixes that a check prints, run against the lab by the tools themselves: red before, green after."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.estate.build import document
from tests.support.cli import vnuma_here
from tests.support.looking import change_by_hand
from tests.support.playbook import play_roles
from tests.support.site import write_inventory
from tests.vsphere.support import govc_environment

WRONG: dict[str, Any] = {
    "cpuHotAddEnabled": True,
    "extraConfig": [vim.option.OptionValue(key="numa.nodeAffinity", value="0")],
}
RULES = {"T11", "T17"}


@pytest.mark.long
def test_govc_mends_what_was_found(lab: LabFactory, programs: dict[str, Path], tmp_path: Path) -> None:
    """The file of `--fix-as govc`, run by bash with the real govc, leaves none of its findings."""
    running = lab(esxi={"version": "7.0.3"})
    site = write_inventory(tmp_path, running)
    outside = govc_environment(running) | {"PATH": f"{programs['govc'].parent}:{os.environ['PATH']}"}
    subprocess.run(["govc", "vm.power", "-off", "sql16"], env=outside, check=True)
    change_by_hand(running, "sql16", numCPUs=32, numCoresPerSocket=16, **WRONG)
    assert _found(site).keys() >= RULES
    script = tmp_path / "fix.sh"
    vnuma_here("check", "--vm", "sql16", "-i", site, "--fix-as", "govc", "-o", script)
    ran = subprocess.run(["bash", "-e", script], env=outside, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not _found(site).keys() & RULES


@pytest.mark.long
def test_the_role_mends_what_was_found(lab: LabFactory, tmp_path: Path) -> None:
    """The variables that JSON has for Ansible, given to the role vm_topology, leave none of the findings."""
    running = lab(esxi={"version": "7.0.3"})
    site = write_inventory(tmp_path, running)
    change_by_hand(running, "sql16", extraConfig=WRONG["extraConfig"])
    arm = _found(site)["T17"]["fix"]["ansible"]
    played = play_roles(tmp_path, site, {"vm_topology": arm})
    assert played.only("vm_topology").changed, played.text
    assert "T17" not in _found(site)


def _found(site: Path) -> dict[str, dict[str, Any]]:
    """Findings on the VM, by rule."""
    ran = vnuma_here("check", "--vm", "sql16", "-i", site, "--format", "json")
    assert ran.code == 0, ran.text
    return {item["rule"]: item for item in document(ran.out)["findings"]}
