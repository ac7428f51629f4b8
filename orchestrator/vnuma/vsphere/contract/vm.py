"""Beliefs about what a vCenter shows of a VM, of its guest and of its host."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim

from vnuma.domain.contract.belief import DiffersError, NotEvaluableError, expect
from vnuma.vsphere.contract.asked import API, READING, AskedVm
from vnuma.vsphere.host_options import OPTIONS, most_cores_per_socket, numa_options

_CONFIG = f"{API}vim.vm.ConfigInfo.html"
_HARDWARE = f"{API}vim.vm.VirtualHardware.html"
_ALLOCATION = f"{API}vim.ResourceAllocationInfo.html"
_GUEST = f"{API}vim.vm.GuestInfo.html"
_NUMA = f"{API}vim.host.NumaInfo.html"


def _one_of(seen: object, *words: str) -> str:
    if str(seen) not in words:
        raise DiffersError(str(seen))
    return str(seen)


@READING.declare("vm.change_version", _CONFIG)
def _change_version(asked: AskedVm) -> str:
    """changeVersion is a text, and the same as long as nobody changes the VM."""
    first, second = asked.value("config.changeVersion"), asked.value("config.changeVersion")
    return expect((bool(first), first == second), (True, True))


@READING.declare("vm.instance_uuid", _CONFIG)
def _instance_uuid(asked: AskedVm) -> str:
    """A VM has an instance UUID, a text of 36 characters."""
    return expect(len(asked.value("config.instanceUuid") or ""), 36)


@READING.declare("vm.hardware_version", _CONFIG)
def _hardware_version(asked: AskedVm) -> str:
    """The hardware version is `vmx-` and a number."""
    word, _, number = str(asked.value("config.version")).partition("-")
    expect((word, number.isdecimal()), ("vmx", True))
    return f"vmx-{number}"


@READING.declare("vm.cores_divide", _HARDWARE)
def _cores_divide(asked: AskedVm) -> str:
    """Cores per socket divide the vCPUs, or are not shown before the first power-on chooses them."""
    cores = asked.value("config.hardware.numCoresPerSocket")
    if not cores:
        raise NotEvaluableError("not chosen yet")
    return expect(asked.value("config.hardware.numCPU") % cores, 0)


@READING.declare("vm.automatic_cores", _HARDWARE)
def _automatic_cores(asked: AskedVm) -> str:
    """From hardware version 20 a VM says whether its cores per socket are automatic."""
    asked.require_topology_fields()
    return expect(asked.value("config.hardware.autoCoresPerSocket") in (True, False), True)


@READING.declare("vm.numa_info", f"{API}vim.vm.VirtualNumaInfo.html")
def _numa_info(asked: AskedVm) -> str:
    """From hardware version 20 a VM shows its virtual NUMA topology and whether it is automatic."""
    asked.require_topology_fields()
    seen = asked.values("config.numaInfo.autoCoresPerNumaNode", "config.numaInfo.vnumaOnCpuHotaddExposed")
    return expect(len(seen), 2)


def _is_complete(asked: AskedVm, resource: str) -> str:
    found = asked.value(f"config.{resource}Allocation")
    parts = (found.reservation, found.limit, found.shares.level, found.shares.shares)
    return expect([part is not None for part in parts], [True] * 4)


@READING.declare("vm.memory_allocation", _ALLOCATION)
def _memory_allocation(asked: AskedVm) -> str:
    """The memory allocation has reservation, limit, the level of its shares and their number."""
    return _is_complete(asked, "memory")


@READING.declare("vm.cpu_allocation", _ALLOCATION)
def _cpu_allocation(asked: AskedVm) -> str:
    """The CPU allocation has reservation, limit, the level of its shares and their number."""
    return _is_complete(asked, "cpu")


@READING.declare("vm.no_limit", _ALLOCATION)
def _no_limit(asked: AskedVm) -> str:
    """A limit is -1 (unlimited), or a number above 0."""
    seen = [asked.value(f"config.{resource}Allocation.limit") for resource in ("memory", "cpu")]
    if not all(limit == -1 or limit > 0 for limit in seen):
        raise DiffersError(str(seen))
    return str(seen)


@READING.declare("vm.locked_reservation", _CONFIG)
def _locked(asked: AskedVm) -> str:
    """A reservation locked to all memory equals the VM's memory."""
    settings = asked.settings()
    if not settings["memoryReservationLockedToMax"]:
        raise NotEvaluableError("not locked")
    return expect(settings["memoryReservation"] == settings["memoryMB"], True)


@READING.declare("vm.no_affinity", _CONFIG)
def _affinity(asked: AskedVm) -> str:
    """A VM without CPU affinity shows none, or an empty set."""
    found = asked.value("config.cpuAffinity")
    if found is not None and found.affinitySet:
        raise NotEvaluableError("it has CPU affinity")
    return "none" if found is None else "an empty set"


@READING.declare("vm.latency_sensitivity", f"{API}vim.LatencySensitivity.html")
def _latency(asked: AskedVm) -> str:
    """Latency sensitivity has one of four values; it may be absent until it is first set."""
    found = asked.value("config.latencySensitivity.level")
    return "absent" if found is None else _one_of(found, "low", "normal", "medium", "high")


@READING.declare("vm.extra_config_is_text", f"{API}vim.option.OptionValue.html")
def _extra_config(asked: AskedVm) -> str:
    """Each value of extraConfig is a text."""
    options = asked.value("config.extraConfig") or []
    return expect(sorted({type(one.value).__name__ for one in options} - {"str"}), [])


@READING.declare("vm.extra_config_has_no_key_twice", f"{API}vim.option.OptionValue.html")
def _keys(asked: AskedVm) -> str:
    """extraConfig has no duplicate keys, ignoring case."""
    keys = [one.key.lower() for one in asked.value("config.extraConfig") or []]
    return expect(len(keys) - len(set(keys)), 0)


@READING.declare("vm.log_directory", f"{API}vim.vm.FileInfo.html")
def _log_directory(asked: AskedVm) -> str:
    """The folder of vmware.log is `[datastore] path`."""
    seen = str(asked.value("config.files").logDirectory)
    return expect((seen[:1], "] " in seen), ("[", True))


@READING.declare("vm.methods_disabled", f"{API}vim.ManagedEntity.html")
def _methods(asked: AskedVm) -> str:
    """disabledMethod has method names of the API, those of tasks with `_Task`."""
    seen = [str(name) for name in asked.value("disabledMethod") or []]
    wrong = [name for name in seen if not name.isascii() or not name.replace("_", "").isalnum()]
    wrong += [name for name in seen if name in ("ReconfigVM", "PowerOnVM", "PowerOffVM")]
    return expect(wrong, [])


@READING.declare("vm.power_state", f"{API}vim.VirtualMachine.PowerState.html")
def _power_state(asked: AskedVm) -> str:
    """A VM is poweredOn, poweredOff or suspended."""
    return _one_of(asked.value("runtime.powerState"), "poweredOn", "poweredOff", "suspended")


@READING.declare("vm.most_cores_per_socket", f"{API}vim.vm.VirtualHardwareOption.html")
def _most_cores(asked: AskedVm) -> str:
    """The host's options for the VM's hardware version say how many cores per socket it may have."""
    seen = most_cores_per_socket(asked.session, asked.vm())
    if seen is None:
        raise NotEvaluableError("the options are not shown")
    return expect(seen > 0, True)


def _running(asked: AskedVm) -> dict[str, Any]:
    seen = asked.values("guest.toolsRunningStatus", "guest.net", "guest.ipAddress", "guest.guestState")
    if seen.get("guest.toolsRunningStatus") != "guestToolsRunning":
        raise NotEvaluableError("Tools do not run")
    return seen


@READING.declare("guest.tools_status", _GUEST)
def _tools(asked: AskedVm) -> str:
    """toolsRunningStatus has one of three values."""
    seen = asked.value("guest.toolsRunningStatus")
    return _one_of(seen, "guestToolsRunning", "guestToolsNotRunning", "guestToolsExecutingScripts")


@READING.declare("guest.state", _GUEST)
def _state(asked: AskedVm) -> str:
    """A guest whose Tools run is `running`."""
    return expect(_running(asked).get("guest.guestState"), "running")


@READING.declare("guest.addresses", _GUEST)
def _addresses(asked: AskedVm) -> str:
    """Tools list the guest's addresses by network card, its first one among them."""
    seen = _running(asked)
    first, cards = seen.get("guest.ipAddress"), seen.get("guest.net") or []
    listed = {one.ipAddress for card in cards if card.ipConfig for one in card.ipConfig.ipAddress}
    if not first:
        raise NotEvaluableError("the guest has no address")
    return expect(first in listed, True)


@READING.declare("guest.none_while_off", _GUEST)
def _while_off(asked: AskedVm) -> str:
    """A VM that is off shows no address and no running Tools."""
    if str(asked.value("runtime.powerState")) != "poweredOff":
        raise NotEvaluableError("the VM is on")
    seen = asked.values("guest.toolsRunningStatus", "guest.net", "guest.ipAddress")
    shown = bool(seen.get("guest.net")) or bool(seen.get("guest.ipAddress"))
    return expect((seen.get("guest.toolsRunningStatus"), shown), ("guestToolsNotRunning", False))


@READING.declare("host.connection", f"{API}vim.HostSystem.ConnectionState.html")
def _connection(asked: AskedVm) -> str:
    """A host is connected, disconnected or notResponding."""
    return _one_of(asked.of_host("runtime.connectionState"), "connected", "disconnected", "notResponding")


@READING.declare("host.maintenance", f"{API}vim.host.RuntimeInfo.html")
def _maintenance(asked: AskedVm) -> str:
    """A host says whether it is in maintenance mode."""
    return expect(asked.of_host("runtime.inMaintenanceMode") in (True, False), True)


@READING.declare("host.cores_and_threads", f"{API}vim.host.CpuInfo.html")
def _threads(asked: AskedVm) -> str:
    """A host's threads are a whole multiple of its cores, and its cores of its packages."""
    cpu = asked.of_host("hardware.cpuInfo")
    return expect((cpu.numCpuThreads % cpu.numCpuCores, cpu.numCpuCores % cpu.numCpuPackages), (0, 0))


@READING.declare("host.numa_nodes_counted", _NUMA)
def _nodes(asked: AskedVm) -> str:
    """A host lists as many NUMA nodes as it counts."""
    numa = asked.of_host("hardware.numaInfo")
    return expect(len(numa.numaNode), numa.numNodes)


@READING.declare("host.numa_nodes_share_the_cpus", _NUMA)
def _cpus(asked: AskedVm) -> str:
    """Each logical CPU of a host is in one of its NUMA nodes, numbered from 0."""
    numa = asked.of_host("hardware.numaInfo")
    listed = sorted(int(cpu) for node in numa.numaNode for cpu in node.cpuID)
    return expect(listed == list(range(asked.of_host("hardware.cpuInfo").numCpuThreads)), True)


@READING.declare("host.numa_nodes_have_memory", _NUMA)
def _memory(asked: AskedVm) -> str:
    """The memories of a host's NUMA nodes add up to the host's memory, within 10%."""
    numa, memory = asked.of_host("hardware.numaInfo"), asked.of_host("hardware.memorySize")
    there = sum(node.memoryRangeLength for node in numa.numaNode)
    return expect(abs(there - memory) <= memory / 10, True)


@READING.declare("host.numa_options", f"{API}vim.option.OptionManager.html#queryView")
def _options(asked: AskedVm) -> str:
    """A host has advanced options whose names begin with `Numa.`."""
    found = numa_options(asked.of_host(OPTIONS))
    if found is None:
        raise NotEvaluableError("the options are not shown")
    return expect(all(name.startswith("Numa.") for name in found) and bool(found), True)


@READING.declare("cluster.drs", f"{API}vim.cluster.DrsConfigInfo.html")
def _drs(asked: AskedVm) -> str:
    """A cluster says whether DRS is on, and lists the VMs with a setting of their own."""
    parent = asked.of_host("parent")
    if not isinstance(parent, vim.ClusterComputeResource):
        raise NotEvaluableError("the host is in no cluster")
    found = asked.session.read(parent, ("configurationEx",)).values.get("configurationEx")
    if found is None:
        raise NotEvaluableError("the cluster is not shown")
    return expect(
        (found.drsConfig.enabled in (True, False), isinstance(found.drsVmConfig, list)), (True, True)
    )
