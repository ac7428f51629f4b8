"""Turn the property collector's values into settings and facts of a VM and of a host. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyVmomi import vim

from vnuma.domain.vm.facts import HostFacts, NumaNode, Release, VmFacts
from vnuma.domain.vm.setting import (
    AUTOMATIC,
    LEASE_PREFIX,
    TYPED,
    Power,
    Value,
    ValueKind,
    is_evidence,
    is_governed,
    meant,
)
from vnuma.vsphere.session import ReadObject
from vnuma.vsphere.wait import question_words

LEASE_KEY = f"{LEASE_PREFIX}run"

EXTRA_CONFIG = "config.extraConfig"

LEAVES: Mapping[str, str] = {name: f"config.{spec.path}" for name, spec in TYPED.items()}
"""Each typed setting's property path."""

# Settings that neither rules nor comparisons with a design use are left out for large estates.
_NOT_READ = {"memoryShares", "cpuShares", "rebootPowerOff"}
FOR_RULES = tuple(name for name in TYPED if name not in _NOT_READ)


def paths(settings: Iterable[str] = TYPED) -> tuple[str, ...]:
    """The property paths that `settings_of` needs for these typed settings, including extraConfig."""
    return (*(LEAVES[name] for name in settings), EXTRA_CONFIG)


def settings_of(values: Mapping[str, Any], settings: Iterable[str] = TYPED) -> dict[str, Value]:
    """These typed settings (None if the release lacks one), and governed and evidence extraConfig keys.

    Typed values are normalised so that equal settings compare equal: CPU sets ascending, an absent field as
    what its absence means, shares by level as a word and custom shares as a number.
    """
    typed: dict[str, Value] = {name: _value(name, values.get(LEAVES[name])) for name in settings}
    extra = extra_config(values.get(EXTRA_CONFIG) or ())
    return typed | {key: text for key, text in sorted(extra.items()) if is_governed(key) or is_evidence(key)}


def _value(name: str, value: Any) -> Value:
    if name in AUTOMATIC:
        return value or None  # 0 and absent may be automatic, which the derived setting shows
    spec = TYPED[name]
    return meant(name, None) if value is None and not spec.since else VALUES[spec.kind](value)


def extra_config(options: Iterable[Any]) -> dict[str, str]:
    """extraConfig as text by key; an empty value means that the key is not set."""
    return {option.key: str(option.value) for option in options if str(option.value)}


def _numbers(info: Any) -> tuple[int, ...]:
    return () if info is None else tuple(sorted(int(number) for number in info.affinitySet))


def _shares(info: Any) -> Value:
    if info is None:
        return None
    level = str(info.level)
    return int(info.shares) if level == "custom" else level


VALUES: Mapping[ValueKind, Callable[[Any], Value]] = {
    ValueKind.NUMBER: lambda value: None if value is None else int(value),
    ValueKind.SWITCH: lambda value: None if value is None else bool(value),
    ValueKind.WORD: lambda value: None if value is None else str(value),
    ValueKind.CPUS: _numbers,
    ValueKind.SHARES: _shares,
}


_MIB = 1024 * 1024

GUEST_NAME = "guest.guestFullName"
GUEST_DETAIL = "guest.guestDetailedData"
"""VMware Tools' details about the guest: since vSphere 8.0 U2, before that in extraConfig."""

VM_PATHS = (
    *("name", "parent", "parentVApp", "runtime.powerState", "runtime.host", "runtime.connectionState"),
    *("config.instanceUuid", "config.version", "config.guestId", "config.template", "config.changeVersion"),
    *("config.managedBy", GUEST_NAME, GUEST_DETAIL),
)
"""Properties for a VM's facts, besides its settings (`paths`)."""

VM_STATE_PATHS = (
    *("disabledMethod", "snapshot", "runtime.question", "config.files", "config.uuid"),
    "guest.toolsRunningStatus",
)
"""Additional properties for the VM of a study."""

_EVC_PATH = "summary.currentEVCModeKey"
HARDWARE_PATHS = (
    *("hardware.systemInfo", "hardware.cpuInfo", "hardware.numaInfo", "hardware.biosInfo"),
    *("hardware.memorySize", "summary.hardware.cpuModel"),
)
"""Host properties that change only at a boot, and are most of the data."""

HOST_STATE_PATHS = (
    *("name", "parent", "runtime.connectionState", "summary.config.product"),
    *("config.powerSystemInfo.currentPolicy.shortName", "config.hyperThread", _EVC_PATH),
)
HOST_PATHS = (*HOST_STATE_PATHS, *HARDWARE_PATHS)
HOST_NEEDED_NOW = ("name", "summary.config.product")
HOST_NEEDED = (*HOST_NEEDED_NOW, "hardware.cpuInfo", "hardware.systemInfo", "hardware.memorySize")
"""Without these a host cannot be judged; a disconnected one may show none of them."""


@dataclass(frozen=True)
class Place:
    """A VM's inventory path, its host's name and its own DRS setting."""

    path: str
    host_name: str
    drs_override: str | None


def vm_facts(vcenter_uuid: str, vm: ReadObject, place: Place, settings: Iterable[str] = TYPED) -> VmFacts:
    """A VM's facts, with these of its typed settings."""
    values = vm.values
    host, question = values.get("runtime.host"), values.get("runtime.question")
    manager = values.get("config.managedBy")
    return VmFacts(
        moid=vm.ref._GetMoId(),
        name=values["name"],
        path=place.path,
        vcenter_uuid=vcenter_uuid,
        instance_uuid=values["config.instanceUuid"],
        bios_uuid=str(values.get("config.uuid") or ""),
        hardware_version=int(values["config.version"].rpartition("-")[2]),
        guest_id=values.get("config.guestId", ""),
        guest_full_name=values.get(GUEST_NAME, ""),
        power=Power(str(values["runtime.powerState"])),
        host_moid=host._GetMoId() if host else "",
        host_name=place.host_name,
        tools_running=values.get("guest.toolsRunningStatus") == "guestToolsRunning",
        change_version=values.get("config.changeVersion", ""),
        settings=settings_of(values, settings),
        lease=extra_config(values.get(EXTRA_CONFIG) or ()).get(LEASE_KEY),
        question=question_words(question) if question else None,
        log_directory=values["config.files"].logDirectory if "config.files" in values else None,
        disabled_methods=tuple(sorted(values.get("disabledMethod") or ())),
        has_snapshot="snapshot" in values,
        drs_override=place.drs_override,
        is_template=bool(values.get("config.template")),
        managed_by=str(manager.extensionKey) if manager and manager.extensionKey else "",
    )


def moved_facts(earlier: VmFacts, vm: ReadObject, place: Place) -> VmFacts:
    """Earlier facts of a VM with unchanged configuration and power; guest and place are current."""
    host = vm.values.get("runtime.host")
    return replace(
        earlier,
        path=place.path,
        host_moid=host._GetMoId() if host else "",
        host_name=place.host_name,
        drs_override=place.drs_override,
        guest_full_name=vm.values.get(GUEST_NAME, ""),
    )


def host_facts(host: ReadObject, drs: Any) -> HostFacts:
    """The facts of a host in a cluster with that configuration (None: in none, or not visible)."""
    values = host.values
    cpu, system = values["hardware.cpuInfo"], values["hardware.systemInfo"]
    nodes, estimated = _numa_nodes(values), _is_estimated(values)
    memory_mb = values["hardware.memorySize"] // _MIB
    hardware = HostFacts(
        moid=host.ref._GetMoId(),
        name=values["name"],
        release=_release(values),
        vendor=system.vendor,
        model=system.model,
        cpu_model=values.get("summary.hardware.cpuModel", ""),
        bios=_bios(values.get("hardware.biosInfo")),
        packages=cpu.numCpuPackages,
        cores=cpu.numCpuCores,
        threads=cpu.numCpuThreads,
        memory_mb=memory_mb,
        numa_nodes=nodes or (NumaNode(0, tuple(range(cpu.numCpuThreads)), memory_mb),),
        mhz=round(cpu.hz / 1e6),
        numa_reported=bool(nodes),
        node_memory_estimated=estimated,
    )
    return host_as_now(hardware, host, drs)


def host_as_now(hardware: HostFacts, host: ReadObject, drs: Any) -> HostFacts:
    """Earlier read hardware of a host, with what may change while it runs as it is now."""
    values = host.values
    enabled = drs is not None and bool(drs.drsConfig.enabled)
    return replace(
        hardware,
        name=values["name"],
        release=_release(values),
        in_drs_cluster=enabled,
        drs_default=_word(drs.drsConfig.defaultVmBehavior) if enabled else None,
        power_policy=values.get("config.powerSystemInfo.currentPolicy.shortName"),
        threads_used=_threads_used(values.get("config.hyperThread")),
        powered_on_mb=None,
        evc_mode=None if _EVC_PATH in host.missing else values.get(_EVC_PATH) or "",
    )


def _release(values: Mapping[str, Any]) -> Release:
    product = values["summary.config.product"]
    return Release(product.version, product.build)


def drs_of(host: ReadObject | None, objects: Mapping[Any, ReadObject]) -> Any:
    """The cluster's configuration; None for a standalone host or an invisible cluster."""
    cluster = objects.get(host.values.get("parent")) if host else None
    return cluster.values.get("configurationEx") if cluster else None


def drs_overrides(drs: Any) -> dict[vim.ManagedEntity, str | None]:
    """VMs with a DRS setting of their own: `disabled` or an automation level."""
    return {
        entry.key: "disabled" if entry.enabled is False else _word(entry.behavior)
        for entry in (drs.drsVmConfig if drs is not None else ())
    }


def _numa_nodes(values: Mapping[str, Any]) -> tuple[NumaNode, ...]:
    """The nodes that ESXi reports, if it does.

    `memoryRangeLength` is the length of one of a node's ranges, not its memory. `memorySize` is, since API
    8.0.0.0. Before that, one node has the host's memory, and several are taken to have equal parts of it.
    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.host.NumaNode.html
    """
    reported = _reported_nodes(values)
    share = values["hardware.memorySize"] // max(1, len(reported))
    nodes = [
        NumaNode(node.typeId, tuple(sorted(node.cpuID)), (node.memorySize or share) // _MIB)
        for node in reported
    ]
    return tuple(sorted(nodes, key=lambda node: node.id))


def _reported_nodes(values: Mapping[str, Any]) -> Sequence[Any]:
    info = values.get("hardware.numaInfo")
    return info.numaNode if info else ()


def _is_estimated(values: Mapping[str, Any]) -> bool:
    """Whether the memory of a node is not the host's own figure."""
    nodes = _reported_nodes(values)
    return len(nodes) > 1 and not all(node.memorySize for node in nodes)


def _threads_used(info: Any) -> bool | None:
    """False where hyper-threading is on and ESXi uses only one thread per core."""
    return None if info is None else bool(info.active) or not (info.available and info.config)


def _bios(info: Any) -> str:
    """Version and date of the BIOS, as far as reported."""
    if info is None:
        return ""
    parts = [info.biosVersion or "", f"{info.releaseDate:%Y-%m-%d}" if info.releaseDate else ""]
    return " ".join(part for part in parts if part)


def _word(value: Any) -> str | None:
    """An enumeration's value as text; None if unset, which means the default."""
    return None if value is None else str(value)
