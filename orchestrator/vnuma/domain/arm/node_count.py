"""`vnuma_nodes: N`: the settings that give the guest N vNUMA nodes on this release and hardware."""

from __future__ import annotations

from vnuma.domain.arm.arm import Arm
from vnuma.domain.topology import release as esxi
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Value
from vnuma.errors import ArmImpossible


def node_count_settings(arm: Arm, vcpus: int, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """The settings for the stated number of vNUMA nodes; empty if the arm sizes nodes itself.

    Raises ArmImpossible if no setting of this release gives that number.
    """
    nodes = arm.vnuma_nodes
    if nodes is None or _sized_by_hand(arm):
        return {}
    if vcpus % nodes:
        raise ArmImpossible(
            "T08",
            f"arm {arm.label}: {vcpus} vCPUs cannot be spread evenly over {nodes} vNUMA nodes.",
            fix="Use a number that divides the vCPUs.",
        )
    desired = _hot_add(arm, nodes, vm, host)
    if esxi.has_virtual_numa(vm, host):
        desired |= _by_virtual_numa(arm, vcpus // nodes)
    elif host.release.key >= esxi.DECOUPLED_SINCE:
        desired |= _by_keys(arm, vcpus // nodes)
    else:
        desired |= _by_sockets(arm, vcpus, nodes)
    if nodes > 1 and vcpus < esxi.DEFAULT_MINIMUM_VCPUS and arm.numa_vcpu_min == "keep":
        desired[esxi.MINIMUM] = str(vcpus)
    return desired


def _sized_by_hand(arm: Arm) -> bool:
    """Whether the arm sets the node size by another field: vnuma_nodes is then only compared."""
    return (
        arm.max_per_virtual_node != "keep"
        or arm.cores_per_numa_node not in ("keep", "auto")
        or arm.follow_cores_per_socket != "auto"
    )


def _by_virtual_numa(arm: Arm, size: int) -> dict[str, Value]:
    """ESXi 8 with hardware 20: virtualNuma.coresPerNumaNode, which requires explicit cores per socket."""
    if arm.cores_per_socket is None:
        raise ArmImpossible(
            "T13",
            f"arm {arm.label}: a number of vNUMA nodes needs explicit cores per socket, or the VM "
            "would not power on.",
            fix="Write a topology such as 2x8.",
        )
    return {"coresPerNumaNode": size, esxi.FOLLOW: None, esxi.MAX_PER_NODE: None}


def _by_keys(arm: Arm, size: int) -> dict[str, Value]:
    """6.5 and later: a node per socket if that is the size, else a maximum that sockets do not affect."""
    if arm.cores_per_socket == size and size > 1:
        return {esxi.FOLLOW: "1", esxi.MAX_PER_NODE: None}
    return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: str(size)}


def _by_sockets(arm: Arm, vcpus: int, nodes: int) -> dict[str, Value]:
    """Up to 6.0, multi-core sockets are the nodes; a maximum works only with one core per socket."""
    size = vcpus // nodes
    if arm.cores_per_socket == 1:
        return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: str(size)}
    if arm.cores_per_socket == size:
        return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: None}
    raise ArmImpossible(
        "T02",
        f"arm {arm.label}: up to ESXi 6.0, each socket with several cores is a vNUMA node, so "
        f"{arm.topology} cannot have {nodes}.",
        fix=f"Use topology {nodes}x{size} or {vcpus}x1.",
    )


def _hot_add(arm: Arm, nodes: int, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """CPU hot-add hides vNUMA, except on ESXi 8 with the VM's own setting."""
    on = vm.settings.get("cpuHotAddEnabled") is True if arm.cpu_hot_add == "keep" else arm.cpu_hot_add == "on"
    if not on or nodes == 1:
        return {}
    if esxi.has_virtual_numa(vm, host) and arm.expose_vnuma_on_hot_add != "off":
        return {"exposeVnumaOnCpuHotadd": True}
    rule = "T12" if esxi.has_virtual_numa(vm, host) else "T11"
    raise ArmImpossible(
        rule,
        f"arm {arm.label}: CPU hot-add shows the guest one vNUMA node, not {nodes}.",
        fix="Set cpu_hot_add: off.",
    )
