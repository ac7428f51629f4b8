"""A file dropped on the what-if page is judged as `vnuma check` judges it."""

from __future__ import annotations

from pathlib import Path

from tests.estate.build import checked
from tests.estate.designs import Design
from tests.estate.workbooks import export, write
from vnuma.checks.what_if import answer
from vnuma.engine.design_check.dropped_file import judge
from vnuma.estate.rvtools import read_rvtools

HOST = {"nodes": "2", "cores": "12", "node_gb": "96", "esxi": "7.0"}


def test_an_export_has_the_findings_of_the_check(tmp_path: Path) -> None:
    """Worst first; each VM can be asked about on its own host."""
    file = write(tmp_path / "export.xlsx", export())
    found = judge(str(file), HOST)
    expected = checked(read_rvtools(file))

    assert [vm["name"] for vm in found["vms"]] == [vm.name for vm in expected.vms]
    for vm, judged in zip(found["vms"], expected.vms, strict=True):
        assert [(one["rule"], one["severity"]) for one in vm["findings"]] == [
            (item.finding.rule, item.severity) for item in judged.findings
        ]
        assert answer(vm["question"])["layouts"][0]["topology"] == vm["shape"]
    assert [vm["undecided"] for vm in found["vms"]] == [bool(vm.undecided) for vm in expected.vms]
    assert found["vms"][0]["question"]["node_gb"] == "256"


def test_a_vm_of_which_little_is_known_is_undecided(tmp_path: Path) -> None:
    """Some export vInfo alone: without cores per socket no rule on the topology is evaluated."""
    found = judge(str(write(tmp_path / "export.xlsx", {"vInfo": export()["vInfo"]})), HOST)

    assert [vm["undecided"] for vm in found["vms"]] == [True] * 3


def test_a_design_runs_on_the_hosts_of_the_question(tmp_path: Path) -> None:
    """A .vmx names no host: 16 vCPUs are two nodes on nodes of 12 cores."""
    found = judge(str(Design(keys={"numa.vcpu.min": "8"}).vmx(tmp_path)), HOST)
    (vm,) = found["vms"]

    assert vm["host"] == "2x12/96@7.0"
    assert {"T05"} <= {one["rule"] for one in vm["findings"]}
    assert vm["question"].items() >= {("vcpus", "16"), ("memory", "64"), ("set", "numa.vcpu.min=8")}
    assert vm["question"].keys().isdisjoint({"nodes"})
