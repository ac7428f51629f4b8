"""The page cache workload on a real kernel with several NUMA nodes, by the real SSH connection.

The guest is emulated: its figures mean nothing and are marked so. Where pages lie is real.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.emulated import Guest, missing, start_guest
from vnuma.domain.page_placement import Placed, growth, not_proven
from vnuma.domain.study_file import parse_study
from vnuma.engine.inventory import study_targets
from vnuma.engine.linux.plan import MachinePlan, plan_machines
from vnuma.engine.linux.shell import PlayedShell
from vnuma.engine.target import Machine
from vnuma.logs import linux_nodes
from vnuma.workloads import page_cache_scripts as scripts
from vnuma.workloads.shell import require

SIZE_MB = 32
STUDY = """
name: emulated
vm: emulated
reference: local
arms:
  - {topology: keep, name: local, workload: {cpu_node: 0, memory_node: 0}}
  - {topology: keep, name: remote, workload: {cpu_node: 0, memory_node: 1}}
  - {topology: keep, name: interleaved, workload: {cpu_node: 0, memory_node: interleave}}
design: {blocks: 6, sentinel: false}
workload: {name: page_cache, sizes: [32], folder: /data}
"""


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.long)])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """A guest of 2 and one of 4 nodes; skipped where something is missing, but not in CI."""
    lacking = missing()
    if lacking:
        reason = f"no emulated guest: missing {', '.join(lacking)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    running = start_guest(tmp_path_factory.mktemp("guest"), request.param)
    yield running
    running.stop()


def _plan(guest: Guest) -> MachinePlan:
    study = parse_study(STUDY, "study")
    machines = {
        name: target
        for name, target in study_targets(guest.inventory, study).items()
        if isinstance(target, Machine)
    }
    return plan_machines(study, machines, guest.inventory)["emulated"]


def test_every_node_is_seen_and_the_guest_is_known_as_emulated(guest: Guest) -> None:
    """The plan tells every node with its CPU, no arm is left out, and figures will be marked."""
    plan = _plan(guest)

    assert [node.cpus for node in plan.machine.nodes] == [(n,) for n in range(len(plan.machine.nodes))]
    assert len(plan.machine.nodes) in (2, 4)
    assert plan.simulated == "emulated: QEMU without KVM"
    assert plan.measured == ("local", "remote", "interleaved")
    assert [one for one in plan.findings if one.severity == "block"] == []


def test_pages_lie_where_they_are_put(guest: Guest) -> None:
    """On the farthest node, then spread over all: FilePages prove both, and what is false is not proven."""
    shell = PlayedShell("emulated", guest.inventory)
    nodes = [node.id for node in _plan(guest).machine.nodes]
    require(shell, scripts.make_file("/data", SIZE_MB), "making the file")
    path = scripts.file_name("/data", SIZE_MB)

    far, spread = (
        _placed(require(shell, scripts.load(path, 0, place, nodes), "placing"))
        for place in (nodes[-1], "interleave")
    )

    assert not_proven(far, nodes[-1]) is None
    assert not_proven(spread, "interleave") is None
    assert "not on node 0" in str(not_proven(far, 0))
    assert "not spread evenly" in str(not_proven(far, "interleave"))


def _placed(text: str) -> Placed:
    shown = linux_nodes.sections(text)
    pages = [
        {node: one["FilePages"] for node, one in linux_nodes.meminfo(shown[name]).items()}
        for name in ("before", "after")
    ]
    return Placed(SIZE_MB * 1_000_000 // 1024, growth(*pages))
