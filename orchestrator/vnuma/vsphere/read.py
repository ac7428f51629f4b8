"""Reading a VM and its host into facts, each in one round trip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyVmomi import vim

from vnuma.domain.facts import HostFacts, NumaNode, Release, VmFacts
from vnuma.domain.setting import Power
from vnuma.errors import EnvironmentProblem
from vnuma.vsphere.find import find_vm, find_vm_by_uuid
from vnuma.vsphere.inventory import container_properties, path_of, upwards
from vnuma.vsphere.session import Found, Query, Session
from vnuma.vsphere.settings import LEASE_KEY, extra_config, paths, settings_of

__all__ = ["find_vm", "find_vm_by_uuid", "host_name", "read_host", "read_vm"]

_MIB = 1024 * 1024

_VM_PATHS = (
    "name",
    "parent",
    "parentVApp",
    "disabledMethod",
    "snapshot",
    "runtime.powerState",
    "runtime.host",
    "runtime.question",
    "runtime.connectionState",
    "guest.toolsRunningStatus",
    "guest.guestFullName",
    "config.instanceUuid",
    "config.version",
    "config.guestId",
    "config.template",
    "config.changeVersion",
    "config.files",
    *paths(),
)

_HOST_PATHS = (
    "name",
    "parent",
    "summary.config.product",
    "hardware.systemInfo",
    "hardware.cpuInfo",
    "hardware.cpuPkg",
    "hardware.numaInfo",
    "hardware.biosInfo",
    "hardware.memorySize",
)


def read_vm(session: Session, ref: vim.VirtualMachine) -> VmFacts:
    """The VM as vSphere shows it now, with its path, its host's name and its DRS override.

    Raises PrivilegeMissing, VmNotFound, and EnvironmentProblem while vCenter has no view of it.
    """
    objects = {found.ref: found for found in session.retrieve([_vm_filter(session, ref)])}
    vm = objects[ref]
    session.require(vm)
    if "config.hardware.numCPU" not in vm.values:
        raise EnvironmentProblem(
            f"vCenter shows no configuration of {vm.values.get('name', ref)} "
            f"(it is {vm.values.get('runtime.connectionState', 'of unknown state')}).",
            fix="Put its host or datastore back in order.",
        )
    return _vm_facts(session, vm, objects)


def host_name(session: Session, ref: vim.VirtualMachine) -> str:
    """The name of the host that the VM runs on, or is registered at. Raises PrivilegeMissing."""
    return session.transport.name_of(session.read(ref, ("runtime.host",)).values["runtime.host"])


def read_host(session: Session, ref: vim.HostSystem) -> HostFacts:
    """The host's hardware, release and NUMA nodes as ESXi reports them, and its cluster's DRS.

    Raises PrivilegeMissing.
    """
    cluster = Query.TraversalSpec(type=vim.HostSystem, path="parent", skip=False)
    filters = Query.FilterSpec(
        objectSet=[Query.ObjectSpec(obj=ref, skip=False, selectSet=[cluster])],
        propSet=[
            Query.PropertySpec(type=vim.HostSystem, pathSet=session.known(vim.HostSystem, _HOST_PATHS)),
            _cluster_properties(),
        ],
    )
    objects = {found.ref: found for found in session.retrieve([filters])}
    host = objects[ref]
    session.require(host)
    drs = _drs(host, objects)
    return _host_facts(host.values, ref, drs)


def _vm_filter(session: Session, ref: vim.VirtualMachine) -> Query.FilterSpec:
    """The VM, its folders, its host and its host's cluster."""
    cluster = Query.TraversalSpec(type=vim.HostSystem, path="parent", skip=False)
    host = Query.TraversalSpec(type=vim.VirtualMachine, path="runtime.host", skip=False, selectSet=[cluster])
    return Query.FilterSpec(
        objectSet=[Query.ObjectSpec(obj=ref, skip=False, selectSet=[*upwards(), host])],
        propSet=[
            Query.PropertySpec(type=vim.VirtualMachine, pathSet=session.known(vim.VirtualMachine, _VM_PATHS)),
            Query.PropertySpec(type=vim.HostSystem, pathSet=["name", "parent"]),
            _cluster_properties(),
            *container_properties(),
        ],
    )


def _cluster_properties() -> Query.PropertySpec:
    return Query.PropertySpec(type=vim.ClusterComputeResource, pathSet=["configurationEx"])


def _vm_facts(session: Session, vm: Found, objects: Mapping[Any, Found]) -> VmFacts:
    values = vm.values
    host = values.get("runtime.host")
    host_found = objects.get(host)
    question = values.get("runtime.question")
    return VmFacts(
        moid=vm.ref._GetMoId(),
        name=values["name"],
        path=path_of(vm, objects),
        vcenter_uuid=session.about.uuid,
        instance_uuid=values["config.instanceUuid"],
        hardware_version=int(values["config.version"].rpartition("-")[2]),
        guest_id=values["config.guestId"],
        guest_full_name=values.get("guest.guestFullName", ""),
        power=Power(str(values["runtime.powerState"])),
        host_moid=host._GetMoId() if host else "",
        host_name=host_found.values.get("name", "") if host_found else "",
        tools_running=values.get("guest.toolsRunningStatus") == "guestToolsRunning",
        change_version=values["config.changeVersion"],
        settings=settings_of(values),
        lease=extra_config(values.get("config.extraConfig") or ()).get(LEASE_KEY),
        question=question.text if question else None,
        log_directory=values["config.files"].logDirectory if "config.files" in values else None,
        disabled_methods=tuple(sorted(values.get("disabledMethod") or ())),
        has_snapshot="snapshot" in values,
        drs_override=_override(_drs(host_found, objects), vm.ref),
        is_template=bool(values.get("config.template")),
    )


def _host_facts(values: Mapping[str, Any], ref: vim.HostSystem, drs: Any) -> HostFacts:
    cpu, system = values["hardware.cpuInfo"], values["hardware.systemInfo"]
    product, packages = values["summary.config.product"], values["hardware.cpuPkg"]
    enabled = drs is not None and bool(drs.drsConfig.enabled)
    return HostFacts(
        moid=ref._GetMoId(),
        name=values["name"],
        release=Release(product.version, product.build),
        vendor=system.vendor,
        model=system.model,
        cpu_model=packages[0].description if packages else "",
        bios=_bios(values.get("hardware.biosInfo")),
        packages=cpu.numCpuPackages,
        cores=cpu.numCpuCores,
        threads=cpu.numCpuThreads,
        memory_mb=values["hardware.memorySize"] // _MIB,
        numa_nodes=_numa_nodes(values),
        mhz=round(cpu.hz / 1e6),
        in_drs_cluster=enabled,
        drs_default=_word(drs.drsConfig.defaultVmBehavior) if enabled else None,
    )


def _numa_nodes(values: Mapping[str, Any]) -> tuple[NumaNode, ...]:
    """The nodes that ESXi reports; without NUMA, one node of every logical CPU and all memory."""
    info = values.get("hardware.numaInfo")
    nodes = [
        NumaNode(node.typeId, tuple(sorted(node.cpuID)), node.memoryRangeLength // _MIB)
        for node in (info.numaNode if info else ())
    ]
    if not nodes:
        every = sorted(cpu for package in values["hardware.cpuPkg"] for cpu in package.threadId)
        nodes = [NumaNode(0, tuple(every), values["hardware.memorySize"] // _MIB)]
    return tuple(sorted(nodes, key=lambda node: node.id))


def _bios(info: Any) -> str:
    """Version and date of the BIOS, as far as they are reported."""
    if info is None:
        return ""
    parts = [info.biosVersion or "", f"{info.releaseDate:%Y-%m-%d}" if info.releaseDate else ""]
    return " ".join(part for part in parts if part)


def _drs(host: Found | None, objects: Mapping[Any, Found]) -> Any:
    """The cluster's configuration, or None for a host outside a cluster or a cluster out of sight."""
    cluster = objects.get(host.values.get("parent")) if host else None
    return cluster.values.get("configurationEx") if cluster else None


def _override(drs: Any, vm: vim.ManagedEntity) -> str | None:
    """The VM's own DRS setting: `disabled` or an automation level; None where it has none."""
    for entry in drs.drsVmConfig if drs is not None else ():
        if entry.key == vm:
            return "disabled" if entry.enabled is False else _word(entry.behavior)
    return None


def _word(value: Any) -> str | None:
    """An enumeration's value as text; None where it is unset, which means the default."""
    return None if value is None else str(value)
