"""Find what changed in a vCenter since an earlier reading, to read only those VMs in full.

`config.changeVersion` changes with every change to a VM's configuration; compare only for equality
(https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.vm.ConfigInfo.html). It covers
everything under `config`, including the name. Everything else that rules need is read again: power, host,
folder, guest, DRS, clusters, hosts; a host's hardware only after a boot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyVmomi import vim

from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.server import TOOLS_KEY, windows_of_tools
from vnuma.vsphere.facts import EXTRA_CONFIG, GUEST_DETAIL, GUEST_NAME, HOST_STATE_PATHS
from vnuma.vsphere.inventory import CONTENTS, VAPP_VMS
from vnuma.vsphere.read import CLUSTERS, OPTIONS, numa_options
from vnuma.vsphere.session import Query, ReadObject, Session, along, ask, starting

TOOLS_PATH = f'{EXTRA_CONFIG}["{TOOLS_KEY}"]'
"""One key of extraConfig, which the property collector can return without the others."""

_VERSION = "config.changeVersion"
_VM_MARKS = (_VERSION, "runtime.powerState", GUEST_DETAIL)
"""Read of every VM: what detects a changed configuration, and what changes independently of it."""

_BOOT = "runtime.bootTime"
_HOST_MARKS = (_BOOT, "vm", OPTIONS, *HOST_STATE_PATHS)
_CLOCKS_DIFFER = timedelta(days=1)
"""A host that booted up to this long before the earlier reading may, by our clock, have booted after it."""

GUEST_MARKS = (TOOLS_PATH, GUEST_NAME)
"""Read in addition if the guest's details do not prove that the same Windows is running."""


CONNECTED = "connected"


def connection_of(found: ReadObject) -> str:
    """The state of vCenter's connection to a host, or of a VM; connected where it is not said."""
    return str(found.values.get("runtime.connectionState", CONNECTED))


@dataclass(frozen=True)
class Changes:
    """Hosts, clusters and folders as they are; VMs to read in full; unchanged VMs.

    `partly` are VMs whose guest (`GUEST_MARKS`) and hosts whose hardware must still be read; `options`
    are the hosts' NUMA options.
    """

    objects: dict[Any, ReadObject] = field(default_factory=dict)
    changed: list[vim.VirtualMachine] = field(default_factory=list)
    taken: dict[Any, EstateVm] = field(default_factory=dict)
    hardware: dict[Any, HostFacts] = field(default_factory=dict)
    options: dict[Any, dict[str, str] | None] = field(default_factory=dict)
    partly: list[vim.ManagedEntity] = field(default_factory=list)

    def read_options(self) -> None:
        """Read the NUMA options of the hosts among the objects."""
        for ref, found in self.objects.items():
            if isinstance(ref, vim.HostSystem) and connection_of(found) == CONNECTED:
                self.options[ref] = numa_options(found.values.get(OPTIONS))


def find_changes(session: Session, view: vim.view.ContainerView, earlier: Estate) -> Changes:
    """Sort the VMs of a view into changed and unchanged since an earlier reading of a vCenter."""
    everything = starting(view, along(vim.view.ContainerView, "view"), wanted=False)
    known = session.known(vim.VirtualMachine, _VM_MARKS)
    with session.second_connection() as other, ThreadPoolExecutor(1, "around") as pool:
        around = pool.submit(_around_vms, other, everything)
        try:
            marks = session.retrieve(ask({vim.VirtualMachine: known}, everything))
        except BaseException:
            other.transport.end()
            raise
        found = around.result()
    found.hardware.update(_same_hardware(session, found.objects.values(), earlier))
    hosts = (ref for ref in found.objects if isinstance(ref, vim.HostSystem))
    found.partly.extend(ref for ref in hosts if ref not in found.hardware)
    places, earlier_vms = _places(found.objects.values()), {one.facts.moid: one for one in earlier.vms}
    for mark in marks:
        before, place = earlier_vms.get(mark.ref._GetMoId()), places.get(mark.ref, {})
        if before and len(place) == _HOST_AND_FOLDER and _is_unchanged(session, mark, before):
            found.taken[mark.ref] = before
            told = {"name": before.facts.name}
            if _has_same_windows(mark, before):
                told[GUEST_NAME] = before.facts.guest_full_name
            else:
                found.partly.append(mark.ref)
            found.objects[mark.ref] = ReadObject(mark.ref, {**mark.values, **place, **told}, {})
        else:
            found.changed.append(mark.ref)
    return found


_HOST_AND_FOLDER = 2


def _around_vms(session: Session, everything: Query.ObjectSpec) -> Changes:
    """Hosts, clusters and folders, with the VMs they hold: in a thread of its own, as this takes long too."""
    wanted = {vim.HostSystem: session.known(vim.HostSystem, _HOST_MARKS), **CLUSTERS, **CONTENTS}
    found = Changes({one.ref: one for one in session.retrieve(ask(wanted, everything))})
    found.read_options()
    return found


def _same_hardware(
    session: Session, objects: Iterable[ReadObject], earlier: Estate
) -> Iterator[tuple[vim.HostSystem, HostFacts]]:
    """Hosts that have run since before the earlier reading, with their facts from it."""
    if any(one.facts.vcenter_uuid != session.about.uuid for one in earlier.vms) or not earlier.vms:
        return  # another vCenter, where the same id names another host
    known = {host.moid: host for cluster in earlier.clusters for host in cluster.hosts}
    before = datetime.fromisoformat(earlier.read_at) - _CLOCKS_DIFFER
    for one in objects:
        facts, booted = known.get(one.ref._GetMoId()), one.values.get(_BOOT)
        has_run = booted is not None and booted < before
        if isinstance(one.ref, vim.HostSystem) and facts and has_run and _is_whole(facts):
            yield one.ref, facts


def _is_whole(facts: HostFacts) -> bool:
    """Whether the host showed all its hardware; what the account could not read is requested again."""
    return bool(facts.numa_reported and facts.bios and facts.cpu_model)


def _is_unchanged(session: Session, mark: ReadObject, earlier: EstateVm) -> bool:
    """Whether the earlier facts still apply. False if the account could or can not read something.

    False after a power-on or power-off too: vSphere 8 shows what it assigned only while the VM is on, under
    the same version of the configuration.
    """
    facts, version = earlier.facts, mark.values.get(_VERSION)
    return (
        bool(version)
        and version == facts.change_version
        and mark.values.get("runtime.powerState") == facts.power.value
        and facts.vcenter_uuid == session.about.uuid
        and earlier.absent.keys() <= {"host"}
        and not mark.missing
    )


def _has_same_windows(mark: ReadObject, earlier: EstateVm) -> bool:
    """Whether the guest's details name the same Windows as before; an older vCenter has no details."""
    now = windows_of_tools(mark.values.get(GUEST_DETAIL, ""))
    return now is not None and now == earlier.guest


def _places(objects: Iterable[ReadObject]) -> dict[Any, dict[str, Any]]:
    """Each VM's host and folder, from the hosts' and folders' lists of VMs, which are smaller to read."""
    places: dict[Any, dict[str, Any]] = {}
    for one in objects:
        if isinstance(one.ref, vim.HostSystem):
            held, name = one.values.get("vm", ()), "runtime.host"
        elif isinstance(one.ref, vim.VirtualApp):
            held, name = one.values.get(VAPP_VMS, ()), "parentVApp"
        else:
            held, name = one.values.get("childEntity", ()), "parent"
        for ref in held:
            if isinstance(ref, vim.VirtualMachine):
                places.setdefault(ref, {})[name] = one.ref
    return places
