"""Find a VM by name, path or UUID, and read it and its host into facts, in few round trips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.errors import EnvironmentProblem, PrivilegeMissing, VmNotFound
from vnuma.vsphere import inventory
from vnuma.vsphere.facts import (
    HOST_NEEDED,
    HOST_PATHS,
    VM_PATHS,
    VM_STATE_PATHS,
    Place,
    drs_of,
    drs_overrides,
    host_facts,
    paths,
    vm_facts,
)
from vnuma.vsphere.faults import NotNow
from vnuma.vsphere.inventory import CONTAINERS, path_of, upwards
from vnuma.vsphere.session import Query, ReadObject, Session, Wanted, along, ask, starting
from vnuma.words.plain_text import listed

OPTIONS = "configManager.advancedOption"
"""The property path of a host's option manager."""


def numa_options(manager: Any) -> dict[str, str] | None:
    """The host's advanced options Numa.*; None if the account may not read them.

    One call per host: as a property they come only with a thousand others.
    """
    try:
        options = manager.QueryOptions("Numa.") if manager else None
    except vim.fault.InvalidName:
        return {}
    except (PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    return None if options is None else {option.key: str(option.value) for option in options}


def most_cores_per_socket(session: Session, vm: VmFacts) -> int | None:
    """The most cores per socket on the VM's host for its hardware version; None if not shown.

    Part of the host's ConfigOption, a document of some hundred kilobytes, so only for single VMs.
    https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.vm.VirtualHardwareOption.html
    """
    try:
        browser = session.read(session.vm(vm.moid), ("environmentBrowser",)).values["environmentBrowser"]
        options = browser.QueryConfigOption(f"vmx-{vm.hardware_version}", session.host(vm.host_moid))
    except (KeyError, PrivilegeMissing, VmNotFound, vmodl.MethodFault):
        return None
    cores = options.hardwareOptions.numCoresPerSocket if options and options.hardwareOptions else None
    return cores.max if cores else None


CLUSTERS: Wanted = {vim.ClusterComputeResource: ("name", "configurationEx")}
"""Properties of a cluster: its DRS settings, including those of single VMs."""

_CONNECTION, _MAINTENANCE = "runtime.connectionState", "runtime.inMaintenanceMode"
_CONNECTIONS = {"notResponding": "not responding"}
_VM_PATHS = (*VM_PATHS, *VM_STATE_PATHS, *paths())


def read_vm(session: Session, ref: vim.VirtualMachine) -> VmFacts:
    """The VM's present facts, with its path, its host's name and its DRS override.

    Raises PrivilegeMissing, VmNotFound, and EnvironmentProblem while vCenter cannot see it.
    """
    objects = _objects(session, ref, vm_filter(session, ref, ("name", "parent")))
    return _vm(session, ref, objects)


def read_vm_on_host(session: Session, ref: vim.VirtualMachine) -> tuple[VmFacts, HostFacts]:
    """A VM and its host, as `read_vm` and `read_host` return them, with one request less."""
    objects = _objects(session, ref, vm_filter(session, ref, (*HOST_PATHS, OPTIONS, "parent")))
    vm = _vm(session, ref, objects)
    return vm, _host(session, session.host(vm.host_moid), objects)


def read_power(session: Session, ref: vim.VirtualMachine) -> tuple[Power, str]:
    """A VM's power state and its host's managed object id.

    Raises PrivilegeMissing and VmNotFound.
    """
    values = session.read(ref, ("runtime.powerState", "runtime.host")).values
    with session.understanding():
        return Power(str(values["runtime.powerState"])), values["runtime.host"]._GetMoId()


def why_no_power_on(session: Session, ref: vim.VirtualMachine) -> str | None:
    """Why the VM's host would not power it on again, as a sentence; None if it would.

    Covers a host that is disconnected, in maintenance mode, or entering it: that task waits until the host's
    last VM goes off (vSphere Web Services API, HostSystem.EnterMaintenanceMode_Task).
    """
    return host_trouble(session.retrieve(host_filter(ref)))


def host_filter(ref: vim.VirtualMachine) -> Query.FilterSpec:
    """The host properties that `host_trouble` needs: state and recent tasks."""
    host = along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "recentTask"))
    wanted = {
        vim.HostSystem: ("name", _CONNECTION, _MAINTENANCE),
        vim.Task: ("info.descriptionId", "info.state"),
    }
    return ask(wanted, starting(ref, host, wanted=False), or_gone=True)


def host_trouble(found: Iterable[ReadObject]) -> str | None:
    """What prevents a power-on on this host, as a sentence."""
    found = list(found)
    for here in (one.values for one in found if isinstance(one.ref, vim.HostSystem)):
        name, connection = here.get("name", "Its host"), str(here.get(_CONNECTION, "connected"))
        if connection != "connected":
            return f"{name} is {_CONNECTIONS.get(connection, connection)}."
        if here.get(_MAINTENANCE):
            return f"{name} is in maintenance mode."
        if any(_enters_maintenance(one.values) for one in found):
            return f"{name} is entering maintenance mode."
    return None


def _enters_maintenance(task: Mapping[str, Any]) -> bool:
    under_way = str(task.get("info.state")) in ("running", "queued")
    return under_way and "entermaintenancemode" in str(task.get("info.descriptionId")).lower()


def _objects(session: Session, ref: vim.ManagedEntity, filters: Query.FilterSpec) -> dict[Any, ReadObject]:
    """The objects found, by reference. Raises unless `ref` is among them: vCenter names a missing object."""
    objects = {found.ref: found for found in session.retrieve(filters)}
    if ref not in objects:
        raise NotNow(
            f"{session.transport.vcenter.address} returned nothing about {ref._GetMoId()}.",
            fix="Check in vCenter whether the account still sees it, and what answers at vCenter's address.",
        )
    return objects


def _vm(session: Session, ref: vim.VirtualMachine, objects: Mapping[Any, ReadObject]) -> VmFacts:
    vm = objects[ref]
    session.require(vm)
    if "config.hardware.numCPU" not in vm.values:
        raise EnvironmentProblem(
            f"vCenter shows no configuration of {vm.values.get('name', ref)} "
            f"(it is {vm.values.get('runtime.connectionState', 'of unknown state')}).",
            fix="Repair its host or datastore connection.",
        )
    host = objects.get(vm.values.get("runtime.host"))
    with session.understanding():
        override = drs_overrides(drs_of(host, objects)).get(ref)
        place = Place(path_of(vm, objects), host.values.get("name", "") if host else "", override)
        facts = vm_facts(session.about.uuid, vm, place)
    return replace(facts, unread=tuple(sorted(vm.unread.values())))


def read_host(session: Session, ref: vim.HostSystem) -> HostFacts:
    """The host's hardware, release and NUMA nodes, its NUMA options, and its cluster's DRS.

    Raises PrivilegeMissing.
    """
    wanted = {vim.HostSystem: session.known(vim.HostSystem, (*HOST_PATHS, OPTIONS)), **CLUSTERS}
    asked = ask(wanted, starting(ref, along(vim.HostSystem, "parent")))
    return _host(session, ref, _objects(session, ref, asked))


def _host(session: Session, ref: vim.HostSystem, objects: Mapping[Any, ReadObject]) -> HostFacts:
    host = objects.get(ref)
    if host is None:
        raise EnvironmentProblem(
            f"vCenter shows nothing of the VM's host {ref._GetMoId()}.",
            fix="Give the account the role on the host too: docs/reference/vcenter-role.md",
        )
    session.require(host)
    if any(path not in host.values for path in HOST_NEEDED):
        raise EnvironmentProblem(
            f"vCenter shows no hardware of {host.values.get('name', ref._GetMoId())} "
            f"(it is {host.values.get('runtime.connectionState', 'of unknown state')}).",
            fix="Connect the host again in the vSphere Client.",
        )
    with session.understanding():
        facts = host_facts(host, drs_of(host, objects))
    return replace(facts, advanced=numa_options(host.values.get(OPTIONS)))


def vm_filter(session: Session, ref: vim.VirtualMachine, of_host: Sequence[str]) -> Query.FilterSpec:
    """The VM, its folders, these properties of its host, and the host's cluster."""
    host = along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "parent"))
    wanted = {
        vim.VirtualMachine: session.known(vim.VirtualMachine, _VM_PATHS),
        vim.HostSystem: dict.fromkeys(session.known(vim.HostSystem, of_host)),
        **CLUSTERS,
        **CONTAINERS,
    }
    return ask(wanted, starting(ref, *upwards(), host))


_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}
_LISTED = 5


def find_vm(session: Session, name_or_path: str) -> vim.VirtualMachine:
    """The VM with exactly that name, or at that inventory path (`/DC1/vm/Test/sql16`).

    Raises VmNotFound for none, with similar names, or for several, with their paths.
    """
    if name_or_path.startswith("/"):
        return _at_path(session, name_or_path)
    names = _names(session)
    refs = [ref for ref, name in names.items() if name == name_or_path]
    if len(refs) == 1:
        return refs[0]
    if refs:
        raise _several(name_or_path, list(inventory.paths(session, refs)))
    raise _none(name_or_path, list(names.values()), session.transport.vcenter.host)


def find_vm_by_uuid(session: Session, instance_uuid: str) -> vim.VirtualMachine:
    """The VM with that instance UUID, whatever its present name and location.

    Raises VmNotFound.
    """
    ref = session.content.searchIndex.FindByUuid(None, instance_uuid, True, True)
    if not isinstance(ref, vim.VirtualMachine):
        raise VmNotFound(
            f"No VM with the instance UUID {instance_uuid} is on {session.transport.vcenter.host}.",
            fix="It was deleted, or the account may not see it.",
        )
    return ref


def _at_path(session: Session, path: str) -> vim.VirtualMachine:
    ref = session.content.searchIndex.FindByInventoryPath(path.strip("/"))
    if isinstance(ref, vim.VirtualMachine):
        return ref
    name = path.rstrip("/").rpartition("/")[2]
    namesakes = [ref for ref, known in _names(session).items() if known == name]
    elsewhere = list(inventory.paths(session, namesakes)) if namesakes else []
    hint = f" VMs with that name: {' and '.join(elsewhere[:_LISTED])}." if elsewhere else ""
    raise VmNotFound(
        f"There is no VM at {path}.{hint}",
        fix="A path has the form /datacenter/vm/folder/name; or give only the name.",
    )


def _names(session: Session) -> Mapping[vim.VirtualMachine, str]:
    """The names of all VMs that the account sees, in one bulk read."""
    content = session.content
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    try:
        each = starting(view, along(vim.view.ContainerView, "view"), wanted=False)
        asked = ask({vim.VirtualMachine: ("name",)}, each, or_gone=True)
        # vSphere writes / and \ in a name as %2f and %5c.
        return {
            found.ref: unquote(found.values["name"])
            for found in session.retrieve(asked)
            if isinstance(found.ref, vim.VirtualMachine) and "name" in found.values
        }
    finally:
        view.DestroyView()


def _several(name: str, found: list[str]) -> VmNotFound:
    shown = found if len(found) <= _LISTED else [*found[: _LISTED - 1], f"{len(found) - _LISTED + 1} more"]
    return VmNotFound(
        f"{_NUMBERS.get(len(found), str(len(found)))} VMs are named {name}: {listed(shown)}.",
        fix=f"Give the path: vm: {found[0]}",
    )


def _none(name: str, known: list[str], where: str) -> VmNotFound:
    close = get_close_matches(name, sorted(set(known)), n=3)
    if close:
        fix = f"Did you mean {' or '.join(close)}?"
    else:
        fix = f"The account sees {len(known)} VMs there; check its name and the account's permissions."
    return VmNotFound(f"No VM is named {name} on {where}.", fix=fix)
