"""The page cache workload for real, on the machine that the tests run on, by the command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.cli import on_terminal, status, vnuma, vnuma_here

STUDY = """
name: here
vm: localhost
reference: local
arms:
  - {{topology: keep, name: local, workload: {{cpu_node: 0, memory_node: 0}}}}
  - {{topology: keep, name: interleaved, workload: {{cpu_node: 0, memory_node: interleave}}}}
design: {{blocks: 1, a_a: false, sentinel: false, warmups: 0, iterations: 1}}
workload: {{name: page_cache, sizes: [16], forms: [single], folder: {folder}}}
"""
ONE_NODE = not Path("/sys/devices/system/node/node1").exists()
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the page cache is dropped, and asked about, by root")
UNREACHABLE = "all: {hosts: {away: {ansible_host: 127.0.0.1, ansible_port: 1, ansible_user: nobody}}}\n"


@ROOT
@pytest.mark.long
@pytest.mark.skipif(shutil.which("numactl") is None, reason="numactl is not installed")
def test_a_study_of_this_machine_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its cells are valid, an arm that one node cannot have is left out aloud, the file is gone."""
    study = tmp_path / "here.yml"
    study.write_text(STUDY.format(folder=tmp_path), encoding="utf-8")

    ran = vnuma("run", study)
    shown = vnuma_here("results", "here.1", "--format", "json")

    cells = 1 if ONE_NODE else 2
    assert (ran.code, shown.code) == (0, 0), ran.text
    assert [run["valid"] for run in status()["runs"]] == [cells]
    assert not (tmp_path / "vnuma-page-cache").exists()


@ROOT
def test_a_plan_says_what_is_left_out_and_a_page_tells_a_change_board(tmp_path: Path) -> None:
    """Passes, not boots; the files; what one node cannot have. Nothing of a vCenter; 80 columns."""
    study, page = tmp_path / "here.yml", tmp_path / "board.html"
    study.write_text(STUDY.format(folder=tmp_path), encoding="utf-8")

    lines = on_terminal(
        80, "plan", study, "--checks", "--document", page, "--ticket", "CHG7", "--color", "never"
    )

    assert any(line.startswith("Runs ") for line in lines)
    assert [line for line in lines if len(line) > 80 and str(tmp_path) not in line] == []
    text = page.read_text(encoding="utf-8")
    assert all(word in text for word in ("CHG7", f"{tmp_path}/vnuma-page-cache", "Passes", "node 0"))
    assert not any(word in text for word in ("power-cycle", "SQL Server", "ESXi"))
    if ONE_NODE:
        assert "interleaved is left out: " in " ".join(" ".join(lines).split())


@ROOT
def test_a_start_reads_the_inventory_once(tmp_path: Path) -> None:
    """A script that counts its runs: targets, channels and the questions to the guest share one reading."""
    study, script, readings = tmp_path / "here.yml", tmp_path / "hosts", tmp_path / "readings"
    study.write_text(STUDY.format(folder=tmp_path).replace("localhost", "here"), encoding="utf-8")
    host = {"ansible_connection": "local", "vnuma_notify": [{"command": ["true"]}]}
    given = json.dumps({"_meta": {"hostvars": {"here": host}}, "all": {"hosts": ["here"]}})
    script.write_text(f"#!/bin/sh\necho >> '{readings}'\necho '{given}'\n", encoding="utf-8")
    script.chmod(0o755)

    created = vnuma("run", study, "-i", script, "--create-only")

    assert created.code == 0, created.text
    assert readings.read_text(encoding="utf-8") == "\n"


def test_a_study_that_shapes_nothing_refuses_a_vm(tmp_path: Path) -> None:
    """A VM's guest can be measured as it is, as a host without a vCenter: that is said."""
    study, inventory = tmp_path / "here.yml", tmp_path / "hosts.yml"
    study.write_text(STUDY.format(folder=tmp_path).replace("localhost", "guest1"), encoding="utf-8")
    vcenter = "{host: vc1, user: u, password: {env: X}}"
    inventory.write_text(f"all: {{hosts: {{guest1: {{vnuma_vcenter: {vcenter}}}}}}}\n", encoding="utf-8")

    planned = vnuma_here("plan", study, "-i", inventory)

    assert planned.code == 3


@ROOT
def test_doctor_asks_a_machine_what_a_study_needs_of_it() -> None:
    """Nodes, kernel settings, root and numactl; no SQL Server's driver is looked for."""
    asked = vnuma("doctor", "localhost", "--format", "json")
    states = {check["subject"]: check["state"] for check in json.loads(asked.out)["checks"]}

    assert states["machine"] == "ok"
    assert not {"driver", "SQL"} & states.keys()
    assert asked.code == (4 if "FAIL" in states.values() else 0)


@pytest.mark.parametrize(
    ("reached_by", "why"),
    [("ansible_ssh_executable: /nowhere/ssh", "ssh is not installed"), ("ansible_port: 1", "")],
    ids=["without SSH", "refused"],
)
def test_a_machine_that_is_not_reached_ends_the_run_before_anything_starts(
    tmp_path: Path, reached_by: str, why: str
) -> None:
    """The sentence has its name and why: not that nobody can become root there."""
    study, inventory = tmp_path / "away.yml", tmp_path / "hosts.yml"
    study.write_text(STUDY.format(folder=tmp_path).replace("localhost", "away"), encoding="utf-8")
    inventory.write_text(UNREACHABLE.replace("ansible_port: 1", reached_by), encoding="utf-8")

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 4
    assert f"away cannot be reached by Ansible: {why}" in ran.text
