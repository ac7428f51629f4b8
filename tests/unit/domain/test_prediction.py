"""The predictor against the golden cases that the lab's Go tests read too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vnuma.domain.prediction import HostShape, predict

CASES = yaml.safe_load((Path(__file__).parents[2] / "data" / "vnuma_golden.yml").read_text())["cases"]


def settings_of(vm: dict[str, Any]) -> dict[str, Any]:
    """A case's VM as settings."""
    settings = {
        "numCPUs": vm["vcpus"],
        "numCoresPerSocket": vm.get("cores_per_socket", 1),
        "autoCoresPerSocket": vm.get("cores_per_socket_auto", False),
        "cpuHotAddEnabled": vm.get("cpu_hot_add", False),
        "exposeVnumaOnCpuHotadd": vm.get("expose_vnuma_on_hot_add", False),
        "coresPerNumaNode": vm.get("cores_per_numa_node"),
    }
    return settings | (vm.get("extra_config") or {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_golden_layout_is_predicted_or_named_as_an_alternative(case: dict[str, Any]) -> None:
    """Where the rules are clear the prediction is the case's; where they are not, it is low and names it."""
    release = tuple(int(part) for part in str(case["release"]).split("."))[:2]
    host = case["host"]
    shape = HostShape(
        (release[0], release[1]),
        host["numa_nodes"],
        host["cores_per_node"],
        host.get("threads_per_core", 1),
        host.get("follow_cores_per_socket", False),
    )

    prediction = predict(shape, settings_of(case["vm"]))

    assert case["expect"]["vnuma_nodes"] in prediction.acceptable
    if prediction.confidence == "high":
        assert prediction.vnuma_nodes == case["expect"]["vnuma_nodes"]
        if case["expect"].get("node_sizes"):
            assert sorted(prediction.node_sizes) == sorted(case["expect"]["node_sizes"])


def test_there_are_golden_cases() -> None:
    """An empty file would let everything pass."""
    assert len(CASES) > 20
