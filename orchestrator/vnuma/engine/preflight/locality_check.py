"""Check whether memory in this VM can be remote, for studies that need it."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.domain.arm.recipe import desired_settings, vcpus_of
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Settings
from vnuma.engine.cell.shape import plan_shape
from vnuma.engine.preflight.findings import Finding
from vnuma.errors import ArmImpossible

_INSTEAD = "Choose arms with vNUMA nodes on two host nodes, by affinity or more vCPUs; or disable it."


def locality_findings(study: Study, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    """Findings about the two vNUMA nodes on two physical nodes that some workloads need in every arm, and the
    positive control in its own.
    """
    remote = study.workload.needs_remote_memory
    if not remote and study.control_arm is None:
        return
    who = f"workload {study.workload.name}" if remote else "design.control"
    if len(host.numa_nodes) < 2:
        yield _one_host_node(who, host)
        return
    for label in study.labels if remote else (study.reference,):
        yield from _two_nodes(study, label, who, vm, host)


def _one_host_node(who: str, host: HostFacts) -> Finding:
    """A host with one node has no remote memory, whatever the arms are."""
    return Finding.block(
        "C03",
        f"{who} needs vNUMA nodes on two physical nodes, but {host.name} has one NUMA node.",
        "Use a host with two NUMA nodes and no node interleaving in its BIOS; or disable it.",
    )


def _two_nodes(study: Study, label: str, who: str, vm: VmFacts, host: HostFacts) -> Iterator[Finding]:
    arm = study.arm(label)
    try:
        prediction = plan_shape(arm, vm, host).prediction
        settings = {**vm.settings, **desired_settings(arm, vm, host)}
    except ArmImpossible:
        return  # reported for the arm itself
    fewest = min((prediction.vnuma_nodes, *prediction.alternatives))
    if prediction.vnuma_nodes < 2:
        yield Finding.block(
            "C01",
            f"{who} needs two vNUMA nodes, but arm {arm.label} gives the guest "
            f"{prediction.vnuma_nodes}: {prediction.because}.",
            _INSTEAD,
        )
        return
    if fewest < 2:
        yield Finding.warn(
            "C02",
            f"Arm {arm.label} may give the guest {fewest} vNUMA node; {who} then fails.",
            "Run one block first.",
        )
    vcpus = vcpus_of(arm, vm)
    nodes = physical_nodes(vcpus, settings, host)
    if nodes < 2:
        yield Finding.block(
            "C03",
            f"{who} needs vNUMA nodes on two physical nodes, but the {vcpus} vCPUs of arm {arm.label} "
            f"fit on one node of {host.name}: all memory would be local.",
            _INSTEAD,
        )


def physical_nodes(vcpus: int, settings: Settings, host: HostFacts) -> int:
    """The fewest host nodes that the VM may run on, by its CPU affinity or else its size."""
    affinity = settings.get("cpuAffinity")
    if isinstance(affinity, tuple) and affinity:
        return sum(bool(set(affinity) & set(node.cpus)) for node in host.numa_nodes)
    return min(len(host.numa_nodes), -(-vcpus // host.cores_per_node))
