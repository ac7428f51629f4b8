"""The positive control: tables on one node, worker on another, proven, measured, restored from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.access.connections import sql_server
from vnuma.engine.audit.log import audit_lines
from vnuma.engine.instance.sql_settings import PROCESS_AFFINITY
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.instance.server_configuration import AUTO, read_affinity

TWO_NODES = {"physical_cores": [0, 1]}
CONTROL: dict[str, Any] = {
    "reference": "2x8",
    "arms": ["2x8"],
    "all_arms": {"affinity": TWO_NODES},
    "design": {"blocks": 1, "order": "fixed", "a_a": False, "control": "remote", "warmups": 0},
    "workload": {"sizes": [60], "forms": ["server"]},
}


def affinity(steps: Steps) -> str:
    """SQL Server's process affinity now."""
    with connect(sql_server(steps.target)) as connection:
        return read_affinity(connection)


def test_a_remote_control_is_placed_proven_slower_and_restored(tmp_path: Path, lab: LabFactory) -> None:
    """Pages on node 0, every execution on the other node; 40% against 20%, threefold in the server form."""
    steps = Steps.prepared(tmp_path / "a", lab("remote"), **CONTROL)
    context = steps.take()
    assert PROCESS_AFFINITY.baseline_of(steps.vm) == AUTO

    steps.measure(context)
    steps.measure(context)

    assert affinity(steps) == AUTO
    (proof,) = steps.facts("control")
    assert isinstance(proof.value, dict)
    assert (proof.value["data_node"], proof.value["worker_node"]) == (0, 1)
    assert proof.value["share"] >= 0.9
    nodes: dict[str, set[int]] = {}
    times: dict[str, list[float]] = {}
    for stored in steps.samples:
        assert isinstance(stored.sample.execution, dict)
        nodes.setdefault(stored.label, set()).add(stored.sample.execution["node_id"])
        times.setdefault(stored.label, []).append(stored.sample.elapsed_ms or 0.0)
    assert nodes["2x8 (remote)"] == {1}
    ratio = min(times["2x8 (remote)"]) / min(times["2x8"])
    assert ratio == pytest.approx((1 + 3 * 0.4) / (1 + 3 * 0.2), rel=0.05)
    changes = [line.change[0] for line in audit_lines(steps.store, None) if line.action == "process affinity"]
    assert [change["after"] for change in changes] == [
        "0,1,2,3,4,5,6,7",
        "8,9,10,11,12,13,14,15",
        AUTO,
    ]
