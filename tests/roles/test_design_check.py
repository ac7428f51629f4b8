"""Role design_check: a gate that tells what it found."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LabFactory
from tests.support.playbook import play_roles
from tests.support.site import write_inventory


def test_a_faulty_vm_fails_the_play_with_its_findings(tmp_path: Path, lab: LabFactory) -> None:
    """Two vCPUs on each core block; the result has the finding, its fix as variables, and the exit code."""
    vm = {"name": "sql16", "cpu_affinity": list(range(16))}
    inventory = write_inventory(tmp_path, lab({"name": "paper", "vms": [vm]}))

    failed = play_roles(tmp_path, inventory, {"design_check": {}})
    assert failed.code != 0
    result = failed.only("design_check")
    assert (result["exit_code"], result["error"]) == (10, "ThresholdMet")
    finding = next(item for item in result["check"]["findings"] if item["rule"] == "A06")
    arm = finding["fix"]["ansible"]["vm_topology_arm"]
    assert arm["affinity"] == "physical_cores"
    assert {arm[field] for field in arm.keys() - {"affinity", "topology"}} == {"keep"}

    passed = play_roles(
        tmp_path, inventory, {"design_check": {"design_check_fail_on": "never", "design_check_sql": True}}
    )
    result = passed.only("design_check")
    assert not result.changed
    assert "S14" in {item["rule"] for item in result["check"]["findings"]}
