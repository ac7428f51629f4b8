"""Can a positive control show anything on this VM? Asked before the first change."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.domain.facts import HostFacts, VmFacts
from vnuma.domain.recipe import desired_settings
from vnuma.domain.setting import Settings
from vnuma.domain.study import Study
from vnuma.engine.findings import Finding
from vnuma.engine.shape import plan_shape
from vnuma.errors import ArmImpossible

_INSTEAD = "Choose a reference arm with nodes on two host nodes, or set design.control: none."


def control_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """The control needs two vNUMA nodes in the reference arm, on two physical nodes."""
    if study.control_arm is None:
        return
    arm = study.arm(study.reference)
    try:
        prediction = plan_shape(arm, vm, host).prediction
        settings = {**vm.settings, **desired_settings(arm, vm, host)}
    except ArmImpossible:
        return  # reported for the arm itself
    fewest = min((prediction.vnuma_nodes, *prediction.alternatives))
    if prediction.vnuma_nodes < 2:
        yield Finding(
            "C01",
            "block",
            f"design.control needs two vNUMA nodes, but the reference arm {arm.label} gives the guest "
            f"{prediction.vnuma_nodes}: {prediction.because}.",
            _INSTEAD,
        )
        return
    if fewest < 2:
        yield Finding(
            "C02",
            "warn",
            f"The reference arm {arm.label} may give the guest {fewest} vNUMA node; the control then fails.",
            "Run one block first.",
        )
    nodes = physical_nodes(study.vcpus, settings, host)
    if nodes < 2:
        yield Finding(
            "C03",
            "block",
            f"design.control needs vNUMA nodes on two physical nodes, but the {study.vcpus} vCPUs of the "
            f"reference arm {arm.label} fit one of {host.name}: remote memory would be the same memory.",
            _INSTEAD,
        )


def physical_nodes(vcpus: int, settings: Settings, host: HostFacts) -> int:
    """The fewest host nodes that the VM can come to lie on: by its CPU affinity, else by its size."""
    affinity = settings.get("cpuAffinity")
    if isinstance(affinity, tuple) and affinity:
        return sum(bool(set(affinity) & set(node.cpus)) for node in host.numa_nodes)
    return min(len(host.numa_nodes), -(-vcpus // host.cores_per_node))
