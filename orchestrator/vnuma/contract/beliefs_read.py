"""Beliefs about a vCenter or ESXi host, a VM, its guest and its host: nothing is changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from vnuma.contract.suite import expect, source
from vnuma.contract.vcenter import API, AskedVm, one_of
from vnuma.domain.vm.role import ELSEWHERE, ROLE
from vnuma.errors import VnumaError
from vnuma.vsphere.counters import OF_HOST, OF_VM, counter_ids
from vnuma.vsphere.faults import fault_name, name_behind
from vnuma.vsphere.read import OPTIONS, most_cores_per_socket, numa_options
from vnuma.vsphere.session import Query, along, ask, starting
from vnuma.vsphere.uptime import CLOCK_PATH, vcenter_clock

_RIGHTS = source(f"{API}vim.AuthorizationManager.html")
_COLLECTOR = source(f"{API}vmodl.query.PropertyCollector.html")
_UPDATES = source(f"{API}vmodl.query.PropertyCollector.html#waitForUpdatesEx")
_CONFIG = source(f"{API}vim.vm.ConfigInfo.html")
_HARDWARE = source(f"{API}vim.vm.VirtualHardware.html")
_ALLOCATION = source(f"{API}vim.ResourceAllocationInfo.html")
_GUEST = source(f"{API}vim.vm.GuestInfo.html")
_NUMA = source(f"{API}vim.host.NumaInfo.html")


@source(f"{API}vim.AboutInfo.html")
def test_server_about(asked: AskedVm) -> None:
    """A server is a `VirtualCenter` or a `HostAgent`, with version, build and API version in numbers; only a
    vCenter has an instance UUID and custom attributes.
    """
    content = asked.session.content
    one_of(content.about.apiType, "VirtualCenter", "HostAgent")
    numbers = [*content.about.version.split("."), content.about.build, *content.about.apiVersion.split(".")]
    expect([part for part in numbers if not part.isdecimal()], [])
    of_vcenter = (bool(content.about.instanceUuid), content.customFieldsManager is not None)
    expect(of_vcenter, (asked.session.about.is_vcenter,) * 2)


@_RIGHTS
def test_server_privileges_exist(asked: AskedVm) -> None:
    """Each privilege of the role for a study exists."""
    known = {one.privId for one in asked.session.content.authorizationManager.privilegeList}
    wanted = {*ROLE, *(helps.privilege for helps in ELSEWHERE)}
    expect(sorted(wanted - known), [])


@_RIGHTS
def test_server_privileges_asked(asked: AskedVm) -> None:
    """It answers for each privilege of a session on a VM."""
    wanted = sorted(ROLE)
    manager = asked.session.content.authorizationManager
    answers = manager.HasPrivilegeOnEntities([asked.ref], asked.session.key, wanted)
    expect(sorted(one.privId for answer in answers for one in answer.privAvailability), wanted)


@source(f"{API}vim.PerformanceManager.html")
def test_server_counters(asked: AskedVm) -> None:
    """It has each performance counter that vnuma reads, by name."""
    expect(sorted({*OF_VM, *OF_HOST} - set(counter_ids(asked.session))), [])


@source(f"{API}vim.ServiceInstance.html#currentTime")
def test_clock_runs_forward(asked: AskedVm) -> None:
    """CurrentTime has a time zone and never goes back, and a host tells its own clock."""
    first = vcenter_clock(asked.session)
    second, of_host = vcenter_clock(asked.session), asked.of_host(CLOCK_PATH).QueryDateTime()
    expect((second >= first, first.tzinfo is None, of_host.tzinfo is None), (True, False, False))


@source(f"{API}vim.vm.RuntimeInfo.html")
def test_clock_boot_time(asked: AskedVm) -> None:
    """The bootTime of a VM that is on lies before its host's clock; one that is off has none."""
    booted = asked.value("runtime.bootTime")
    on = str(asked.value("runtime.powerState")) == "poweredOn"
    if on and booted is not None:
        now = asked.of_host(CLOCK_PATH).QueryDateTime()
        expect(booted <= now + timedelta(seconds=1), True)
    else:
        expect(booted is None, not on)


@source(f"{API}vmodl.fault.ManagedObjectNotFound.html")
@pytest.mark.parametrize(
    ("what", "kind", "path"),
    [
        pytest.param("a missing VM", vim.VirtualMachine, "name", id="missing_object"),
        pytest.param("a task that vCenter has forgotten", vim.Task, "info.state", id="unknown_task"),
    ],
)
def test_fault(asked: AskedVm, what: str, kind: Any, path: str) -> None:
    """Reading {what} is ManagedObjectNotFound."""
    seen = "none"
    try:
        asked.session.read(kind("none-0", asked.session.transport), (path,))
    except VnumaError as error:
        seen = name_behind(error)
    except vmodl.MethodFault as fault:
        seen = fault_name(fault)
    expect(seen, "ManagedObjectNotFound")


@_COLLECTOR
def test_read_unset_is_absent(asked: AskedVm) -> None:
    """An unset property is left out of the answer, neither null nor a fault."""
    spec = ask({vim.VirtualMachine: ("name", "runtime.question")}, starting(asked.ref))
    answer = asked.session.content.propertyCollector.RetrievePropertiesEx([spec], Query.RetrieveOptions())
    (found,) = answer.objects
    names = sorted(one.name for one in found.propSet)
    if names == ["name", "runtime.question"]:
        pytest.skip("the VM asks a question now")
    expect((names, list(found.missingSet)), (["name"], []))


@_COLLECTOR
def test_read_traversal_of_the_host(asked: AskedVm) -> None:
    """One request reads a VM and, along `runtime.host`, its host."""
    asked.of_host("name")
    objects = starting(asked.ref, along(vim.VirtualMachine, "runtime.host"))
    found = asked.session.retrieve(ask({vim.VirtualMachine: ("name",), vim.HostSystem: ("name",)}, objects))
    kinds = sorted(type(one.ref).__name__.rpartition(".")[2] for one in found)
    expect(kinds, ["HostSystem", "VirtualMachine"])


@source(f"{API}vim.SearchIndex.html")
def test_read_find_by_uuid(asked: AskedVm) -> None:
    """A VM is found by its instance UUID."""
    uuid = asked.value("config.instanceUuid")
    found = asked.session.content.searchIndex.FindByUuid(None, uuid, vmSearch=True, instanceUuid=True)
    expect(bool(found) and found._GetMoId() == asked.ref._GetMoId(), True)


@_UPDATES
def test_wait_updates(asked: AskedVm) -> None:
    """The first update of a new filter is the present state; without changes a wait of 0 seconds has none."""
    collector = asked.session.content.propertyCollector.CreatePropertyCollector()
    try:
        spec = ask({vim.VirtualMachine: ("name",)}, starting(asked.ref))
        collector.CreateFilter(spec=spec, partialUpdates=False)
        now = Query.WaitOptions(maxWaitSeconds=0)
        first = collector.WaitForUpdatesEx("", now)
        kinds = [str(one.kind) for entry in first.filterSet for one in entry.objectSet]
        expect((kinds, collector.WaitForUpdatesEx(first.version, now)), (["enter"], None))
    finally:
        collector.DestroyPropertyCollector()


@_CONFIG
def test_vm_identity(asked: AskedVm) -> None:
    """A VM has an instance UUID of 36 characters, a hardware version `vmx-` and a number, and a changeVersion
    that stays as long as nobody changes it.
    """
    word, _, number = str(asked.value("config.version")).partition("-")
    first, second = asked.value("config.changeVersion"), asked.value("config.changeVersion")
    length = len(asked.value("config.instanceUuid") or "")
    expect((length, word, number.isdecimal(), bool(first), first == second), (36, "vmx", True, True, True))


@_HARDWARE
def test_vm_cores_divide(asked: AskedVm) -> None:
    """Cores per socket divide the vCPUs, or are not shown before the first power-on chooses them."""
    cores = asked.value("config.hardware.numCoresPerSocket") or pytest.skip("not chosen yet")
    expect(asked.value("config.hardware.numCPU") % cores, 0)


@_HARDWARE
def test_vm_automatic_cores(asked: AskedVm) -> None:
    """From hardware version 20 a VM says whether its cores per socket are automatic."""
    asked.require_topology_fields()
    one_of(asked.value("config.hardware.autoCoresPerSocket"), "True", "False")


@source(f"{API}vim.vm.VirtualNumaInfo.html")
def test_vm_numa_info(asked: AskedVm) -> None:
    """From hardware version 20 a VM shows its virtual NUMA topology and whether it is automatic."""
    asked.require_topology_fields()
    seen = asked.values("config.numaInfo.autoCoresPerNumaNode", "config.numaInfo.vnumaOnCpuHotaddExposed")
    expect(len(seen), 2)


@_ALLOCATION
@pytest.mark.parametrize("what", [pytest.param(one, id=f"{one}_allocation") for one in ("memory", "cpu")])
def test_vm(asked: AskedVm, what: str) -> None:
    """The {what} allocation has reservation, limit (-1: none), the level of its shares and their number."""
    reservation, limit, shares = (
        asked.value(f"config.{what}Allocation.{part}") for part in ("reservation", "limit", "shares")
    )
    expect([part is None for part in (reservation, shares.level, shares.shares)], [False] * 3)
    expect(limit == -1 or limit > 0, True)


@source(f"{API}vim.option.OptionValue.html")
def test_vm_extra_config(asked: AskedVm) -> None:
    """Each value of extraConfig is a text, and no key comes twice, ignoring case."""
    options = asked.value("config.extraConfig") or []
    keys = [one.key.lower() for one in options]
    expect(sorted({type(one.value).__name__ for one in options} - {"str"}), [])
    expect(len(keys) - len(set(keys)), 0)


@source(f"{API}vim.vm.FileInfo.html")
def test_vm_log_directory(asked: AskedVm) -> None:
    """The folder of vmware.log is `[datastore] path`."""
    seen = str(asked.value("config.files").logDirectory)
    expect((seen[:1], "] " in seen), ("[", True))


@source(f"{API}vim.ManagedEntity.html")
def test_vm_methods_disabled(asked: AskedVm) -> None:
    """disabledMethod has method names of the API, those of tasks with `_Task`."""
    seen = [str(name) for name in asked.value("disabledMethod") or []]
    wrong = [name for name in seen if not name.isascii() or not name.replace("_", "").isalnum()]
    wrong += [name for name in seen if name in ("ReconfigVM", "PowerOnVM", "PowerOffVM")]
    expect(wrong, [])


def _word(path: str, words: str, page: str) -> object:
    name = path.removesuffix(".level").rpartition(".")[2]
    return pytest.param(path, words, id=name, marks=source(f"{API}{page}.html"))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        _word("runtime.powerState", "poweredOn, poweredOff, suspended", "vim.VirtualMachine.PowerState"),
        _word("config.latencySensitivity.level", "None, low, normal, medium, high", "vim.LatencySensitivity"),
        _word(
            "guest.toolsRunningStatus",
            "guestToolsRunning, guestToolsNotRunning, guestToolsExecutingScripts",
            "vim.vm.GuestInfo",
        ),
        _word(
            "runtime.connectionState",
            "connected, disconnected, notResponding",
            "vim.HostSystem.ConnectionState",
        ),
        _word("runtime.inMaintenanceMode", "True, False", "vim.host.RuntimeInfo"),
    ],
)
def test_word(asked: AskedVm, path: str, words: str) -> None:
    """`{path}` is one of {words}."""
    of_host = path.endswith(("connectionState", "inMaintenanceMode"))
    one_of(asked.of_host(path) if of_host else asked.value(path), *words.split(", "))


@source(f"{API}vim.vm.VirtualHardwareOption.html")
def test_vm_most_cores_per_socket(asked: AskedVm) -> None:
    """The host's options for the VM's hardware version say how many cores per socket it may have."""
    seen = most_cores_per_socket(asked.session, asked.vm())
    if seen is None:
        pytest.skip("the options are not shown")
    expect(seen > 0, True)


@_GUEST
def test_guest_running(asked: AskedVm) -> None:
    """A guest whose Tools run is `running`, and its first address is among those of its network cards."""
    seen = asked.values("guest.toolsRunningStatus", "guest.net", "guest.ipAddress", "guest.guestState")
    if seen.get("guest.toolsRunningStatus") != "guestToolsRunning":
        pytest.skip("Tools do not run")
    first, cards = seen.get("guest.ipAddress"), seen.get("guest.net") or []
    listed = {one.ipAddress for card in cards if card.ipConfig for one in card.ipConfig.ipAddress}
    expect((seen.get("guest.guestState"), not first or first in listed), ("running", True))


@_GUEST
def test_guest_none_while_off(asked: AskedVm) -> None:
    """A VM that is off shows no address and no running Tools."""
    if str(asked.value("runtime.powerState")) != "poweredOff":
        pytest.skip("the VM is on")
    seen = asked.values("guest.toolsRunningStatus", "guest.net", "guest.ipAddress")
    shown = bool(seen.get("guest.net")) or bool(seen.get("guest.ipAddress"))
    expect((seen.get("guest.toolsRunningStatus"), shown), ("guestToolsNotRunning", False))


@source(f"{API}vim.host.CpuInfo.html")
def test_host_cores_and_threads(asked: AskedVm) -> None:
    """A host's threads are a whole multiple of its cores, and its cores of its packages."""
    cpu = asked.of_host("hardware.cpuInfo")
    expect((cpu.numCpuThreads % cpu.numCpuCores, cpu.numCpuCores % cpu.numCpuPackages), (0, 0))


@_NUMA
def test_host_numa_nodes(asked: AskedVm) -> None:
    """A host lists as many NUMA nodes as it counts; each logical CPU, numbered from 0, is in one of them."""
    numa, threads = asked.of_host("hardware.numaInfo"), asked.of_host("hardware.cpuInfo").numCpuThreads
    listed = sorted(int(cpu) for node in numa.numaNode for cpu in node.cpuID)
    expect((len(numa.numaNode) == numa.numNodes, listed == list(range(threads))), (True, True))


@source(f"{API}vim.host.NumaNode.html")
def test_host_numa_nodes_have_memory(asked: AskedVm) -> None:
    """From API 8.0 the memories of a host's NUMA nodes (memorySize) add up to the host's, within 10%."""
    numa, memory = asked.of_host("hardware.numaInfo"), asked.of_host("hardware.memorySize")
    sizes = [size for node in numa.numaNode if (size := getattr(node, "memorySize", None))]
    if not sizes:
        pytest.skip("memorySize is not shown")
    expect(abs(sum(sizes) - memory) <= memory / 10, True)


@source(f"{API}vim.option.OptionManager.html#queryView")
def test_host_numa_options(asked: AskedVm) -> None:
    """A host has advanced options whose names begin with `Numa.`."""
    found = numa_options(asked.of_host(OPTIONS))
    if found is None:
        pytest.skip("the options are not shown")
    expect(all(name.startswith("Numa.") for name in found) and bool(found), True)


@source(f"{API}vim.cluster.DrsConfigInfo.html")
def test_cluster_drs(asked: AskedVm) -> None:
    """A cluster says whether DRS is on, and lists the VMs with a setting of their own."""
    parent = asked.of_host("parent")
    if not isinstance(parent, vim.ClusterComputeResource):
        pytest.skip("the host is in no cluster")
    found = asked.session.read(parent, ("configurationEx",)).values.get("configurationEx")
    if found is None:
        pytest.skip("the cluster is not shown")
    expect((found.drsConfig.enabled in (True, False), isinstance(found.drsVmConfig, list)), (True, True))
