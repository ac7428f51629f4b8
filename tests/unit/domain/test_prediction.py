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


OWN_HARDWARE = {"6.0": 11, "6.5": 13, "6.7": 14, "7.0": 17, "8.0": 20}


def hardware_of(case: dict[str, Any]) -> int:
    """The case's virtual hardware: the newest of its release where it says none."""
    return int(case["vm"].get("hardware") or OWN_HARDWARE[case["release"]])


def shape_of(case: dict[str, Any]) -> HostShape:
    """A case's host."""
    major, minor = (int(part) for part in str(case["release"]).split("."))
    host = case["host"]
    return HostShape(
        (major, minor),
        host["numa_nodes"],
        host["cores_per_node"],
        host.get("threads_per_core", 1),
        host.get("follow_cores_per_socket", False),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_golden_layout_is_predicted_or_named_as_an_alternative(case: dict[str, Any]) -> None:
    """Where the rules are clear the prediction is the case's; where they are not, it is low and names it."""
    expect = case["expect"]

    prediction = predict(shape_of(case), settings_of(case["vm"]), hardware_of(case))

    if "vnuma_nodes" in expect:
        assert expect["vnuma_nodes"] in prediction.acceptable
    if prediction.confidence == "low":
        assert len(prediction.because) > 20
        return
    if "vnuma_nodes" in expect:
        assert prediction.vnuma_nodes == expect["vnuma_nodes"]
    if "node_sizes" in expect:
        assert list(prediction.node_sizes) == expect["node_sizes"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "clients" in case["expect"]], ids=lambda case: str(case["id"])
)
def test_a_published_number_of_clients_is_predicted(case: dict[str, Any]) -> None:
    """How ESXi places the VM follows from capacity and nodes, whatever the guest is shown."""
    prediction = predict(shape_of(case), settings_of(case["vm"]), hardware_of(case))

    assert len(prediction.clients) == case["expect"]["clients"]
    if "client_sizes" in case["expect"]:
        assert list(prediction.clients) == case["expect"]["client_sizes"]


def test_there_are_golden_cases() -> None:
    """An empty file would let everything pass."""
    assert len(CASES) > 20
