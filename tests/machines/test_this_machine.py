"""The page cache workload for real, on the machine that the tests run on, by the command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.cli import vnuma

STUDY = """
name: here
vm: localhost
reference: local
arms:
  - {{topology: keep, name: local, workload: {{cpu_node: 0, memory_node: 0}}}}
  - {{topology: keep, name: interleaved, workload: {{cpu_node: 0, memory_node: interleave}}}}
design: {{blocks: 1, a_a: false, sentinel: false, warmups: 0, iterations: 1}}
workload: {{name: page_cache, sizes: [64], forms: [single, unsaturated], folder: {folder}}}
"""
ONE_NODE = not Path("/sys/devices/system/node/node1").exists()
UNREACHABLE = "all: {hosts: {away: {ansible_host: 127.0.0.1, ansible_port: 1, ansible_user: nobody}}}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="dropping the page cache needs root")
@pytest.mark.skipif(shutil.which("numactl") is None, reason="numactl is not installed")
def test_a_study_of_this_machine_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its cells are valid, an arm that one node cannot have is left out aloud, the file is gone."""
    study = tmp_path / "here.yml"
    study.write_text(STUDY.format(folder=tmp_path), encoding="utf-8")

    ran = vnuma("run", study)
    shown = vnuma("results", "here.1", "--format", "json")

    cells = 1 if ONE_NODE else 2
    assert f"{cells} of {cells} cells valid" in ran.text, ran.text
    assert ran.code == 0
    assert '"GB/s"' in shown.out
    assert not (tmp_path / "vnuma-page-cache").exists()
    if ONE_NODE:
        assert "interleaved is left out: " in " ".join(vnuma("plan", study).out.split())


def test_a_refused_connection_is_one_sentence_before_anything_starts(tmp_path: Path) -> None:
    """A machine that SSH does not reach ends the run with its name and what SSH said."""
    study, inventory = tmp_path / "away.yml", tmp_path / "hosts.yml"
    study.write_text(STUDY.format(folder=tmp_path).replace("localhost", "away"), encoding="utf-8")
    inventory.write_text(UNREACHABLE, encoding="utf-8")

    ran = vnuma("run", study, "-i", inventory)

    assert ran.code == 4
    assert "away cannot be reached by Ansible" in ran.text
