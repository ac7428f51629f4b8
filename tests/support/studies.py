"""Studies that tests start from."""

from __future__ import annotations

from typing import Any

from tests.support.hosts import host_of, vm_of
from vnuma.domain.study.study import Study
from vnuma.engine.preflight.plan import ShapePlan, TargetPlan, plan_arm

GOOD = """name: a
vm: sql16
vcpus: 16
reference: 1x16
arms:
  - 1x16
  - 2x8
"""

TWO_NODES = {"physical_cores": [0, 1]}
LOG: dict[str, Any] = {
    "reference": "same_node",
    "arms": [
        {"topology": "2x8", "name": "same_node", "workload": {"workers": "same_node"}},
        {"topology": "2x8", "name": "other_node", "workload": {"workers": "other_node"}},
    ],
    "all_arms": {"affinity": TWO_NODES},
    "design": {"blocks": 1, "order": "fixed", "iterations": 1},
    "workload": {"name": "log_spinlock", "sizes": [2_000_000], "forms": ["disk", "native"]},
}
"""The small study of steps with this workload: two cells."""


def study(**changes: Any) -> Study:
    """The paper's arms, unpinned, timed by the server form."""
    base = {
        "name": "s",
        "vms": ["sql16"],
        "vcpus": 16,
        "reference": "1x16",
        "arms": ["1x16", "4x4"],
        "workload": {"forms": ["server"]},
    }
    return Study.model_validate(base | changes)


def plan_of(planned: Study) -> TargetPlan:
    """Its plan for the paper's VM, without findings."""
    host, vm = host_of(), vm_of()
    arms = tuple(plan_arm(planned, label, vm, host) for label in planned.labels)
    return TargetPlan(
        name=vm.name,
        key=vm.key,
        path=vm.path,
        host_name=host.name,
        findings=(),
        boots=16,
        seconds=3600.0,
        simulated=None,
        left_out={},
        shape=ShapePlan(vm, host, None, (), arms, test_clone=True),
        linux=None,
    )
