"""Hosts and VMs as values, for tests of pure code."""

from __future__ import annotations

from typing import Any

from vnuma.domain.vm.facts import GuestTopology, HostFacts, NumaNode, Release, VmFacts
from vnuma.domain.vm.setting import Power


def host_of(
    *, nodes: int = 2, cores: int = 16, threads: int = 2, release: str = "6.0.0", memory_gb: int = 192
) -> HostFacts:
    """A host of `nodes` NUMA nodes with `cores` cores each; threads of a core are numbered in a row."""
    width = cores * threads
    return HostFacts(
        moid="host-1",
        name="esx01",
        release=Release(release),
        vendor="HP",
        model="DL380",
        cpu_model="E5-2698 v3",
        bios="1",
        packages=nodes,
        cores=nodes * cores,
        threads=nodes * width,
        memory_mb=memory_gb * 1024,
        mhz=2300,
        numa_nodes=tuple(
            NumaNode(n, tuple(range(n * width, (n + 1) * width)), memory_gb * 1024 // nodes)
            for n in range(nodes)
        ),
    )


def vm_of(**settings: Any) -> VmFacts:
    """The paper's VM, with other settings where named."""
    values: dict[str, Any] = {
        "numCPUs": 16,
        "numCoresPerSocket": 4,
        "memoryMB": 65536,
        "cpuAffinity": (),
    } | settings
    return VmFacts(
        moid="vm-1",
        name="sql16",
        path="/DC0/vm/sql16",
        vcenter_uuid="v",
        instance_uuid="i",
        hardware_version=11,
        guest_id="windows9Server64Guest",
        guest_full_name="Windows",
        power=Power.ON,
        host_moid="host-1",
        host_name="esx01",
        tools_running=True,
        change_version="1",
        settings=values,
    )


def guest_of(
    vcpus: int, sockets: int | None, per_socket: int | None, nodes: int, *, offline: int = 0
) -> GuestTopology:
    """What SQL Server shows of a guest."""
    return GuestTopology(
        vcpus=vcpus,
        sockets=sockets,
        cores_per_socket=per_socket,
        numa_nodes=nodes,
        sql_cpu_nodes=nodes,
        soft_numa="OFF",
        visible_online=vcpus - offline,
        visible_offline=offline,
    )
