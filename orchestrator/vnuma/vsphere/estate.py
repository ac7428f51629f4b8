"""Read a whole vCenter in bulk: few round trips, only the properties that rules need. Read-only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.checks.facts import EXTRA_CONFIG
from vnuma.collector import gc_paused
from vnuma.domain.vm.estate import Estate, EstateVm, Unseen, running_memory
from vnuma.domain.vm.facts import ClusterFacts, HostFacts
from vnuma.domain.vm.server import TOOLS_KEY, WindowsFacts, windows_of_tools
from vnuma.errors import VCenterUnreachable
from vnuma.vsphere import facts as settings
from vnuma.vsphere.estate_changes import (
    CONNECTED,
    GUEST_MARKS,
    TOOLS_PATH,
    Changes,
    connection_of,
    find_changes,
)
from vnuma.vsphere.facts import (
    GUEST_DETAIL,
    GUEST_NAME,
    HARDWARE_PATHS,
    HOST_NEEDED,
    HOST_NEEDED_NOW,
    HOST_PATHS,
    VM_PATHS,
    Place,
    drs_of,
    drs_overrides,
    host_as_now,
    host_facts,
    moved_facts,
    vm_facts,
)
from vnuma.vsphere.faults import describe
from vnuma.vsphere.inventory import CONTAINERS, path_of, upwards
from vnuma.vsphere.read import CLUSTERS, OPTIONS
from vnuma.vsphere.session import ReadObject, Session, Wanted, ask, starting

_AT_ONCE = 500
"""Objects per request: enough to be fast, few enough to be answered in time."""

_VM_NEEDED = ("name", "config.hardware.numCPU", "config.instanceUuid", "config.version", "runtime.powerState")


SYSTEM_VM = "vSphere runs it for itself (vCLS): not judged"
"""Why a VM that could be read is skipped."""


@gc_paused()
def read_estate(
    session: Session, only: vim.VirtualMachine | None = None, earlier: Estate | None = None
) -> Estate:
    """Every VM, host and cluster that the account sees; with `only`, that VM and those on its host.

    With `earlier`, a reading of the same vCenter, VMs with an unchanged configuration are not read in full
    again. What cannot be read is listed in `unseen`. Raises VCenterUnreachable.
    """
    found = _found(session, only, earlier)
    objects = found.objects
    with session.understanding():
        hosts, unseen = _hosts(found)
    uncounted = _with_others(objects)
    vms = list(_vms(session, found, hosts, unseen, uncounted))
    if only is None:
        unseen += [Unseen("vm", vm.facts.name, SYSTEM_VM) for vm in vms if vm.facts.is_system_vm]
    hosts = _with_memory(hosts, vms, uncounted)
    read_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Estate(
        source=session.transport.vcenter.host,
        kind="vcenter",
        read_at=read_at,
        product=session.about.name,
        version=session.about.release.version,
        vms=tuple(_judged(vms, only)),
        clusters=tuple(_clusters(objects, hosts)),
        unseen=tuple(unseen),
        whole=only is None,
        full_at=earlier.full_at if earlier and found.taken else read_at,
        taken_over=len(found.taken),
    )


def _judged(vms: Iterable[EstateVm], only: vim.VirtualMachine | None) -> Iterator[EstateVm]:
    """The VMs to judge: the named one, or all but those that vSphere runs for itself."""
    for vm in vms:
        if vm.facts.moid == only._GetMoId() if only is not None else not vm.facts.is_system_vm:
            yield vm


@contextmanager
def _everything(session: Session) -> Iterator[vim.view.ContainerView]:
    """A view of all VMs, hosts, clusters and folders."""
    kinds = [vim.VirtualMachine, vim.HostSystem, vim.ClusterComputeResource]
    kinds += [vim.Folder, vim.Datacenter, vim.VirtualApp]
    content = session.content
    view = content.viewManager.CreateContainerView(content.rootFolder, kinds, True)
    try:
        yield view
    finally:
        view.DestroyView()


def _around(session: Session, only: vim.VirtualMachine) -> list[vim.ManagedEntity]:
    """The VM with its folders and its host, that host's VMs, and the other hosts of its cluster."""
    above = ask({vim.ManagedEntity: ("name",)}, starting(only, *upwards()))
    refs = [found.ref for found in session.retrieve(above)]
    host = session.read(only, ("runtime.host",)).values.get("runtime.host")
    if host is not None:
        at_host = session.read(host, ("vm", "parent")).values
        refs += [host, *at_host.get("vm", ())]
        cluster = at_host.get("parent")
        if isinstance(cluster, vim.ClusterComputeResource):
            refs += [cluster, *session.read(cluster, ("host",)).values.get("host", ())]
    return list(dict.fromkeys(refs))


def _found(session: Session, only: vim.VirtualMachine | None, earlier: Estate | None) -> Changes:
    """The objects. With an earlier reading, unchanged VMs are listed but not read in full."""
    vm = _known(session, vim.VirtualMachine, (*VM_PATHS, *settings.paths(settings.FOR_RULES)))
    if earlier is None:
        hosts = _known(session, vim.HostSystem, (*HOST_PATHS, OPTIONS, "vm"))
        with _everything(session) as view:
            seen: Any = view.view
            refs = list(seen) if only is None else _around(session, only)
        read = _read(session, refs, {**vm, **hosts, **CLUSTERS, **CONTAINERS})
        changes = Changes({found.ref: found for found in read})
        changes.read_options()
        return changes
    with _everything(session) as view:
        changes = find_changes(session, view, earlier)
    changes.objects.update((found.ref, found) for found in _read(session, changes.changed, vm))
    hardware = _known(session, vim.HostSystem, HARDWARE_PATHS)
    for found in _read(session, changes.partly, {vim.VirtualMachine: GUEST_MARKS, **hardware}):
        mark = changes.objects[found.ref]
        values, missing = {**mark.values, **found.values}, {**mark.missing, **found.missing}
        changes.objects[found.ref] = ReadObject(mark.ref, values, missing, {**mark.unread, **found.unread})
    return changes


def _read(session: Session, refs: Sequence[vim.ManagedEntity], wanted: Wanted) -> Iterator[ReadObject]:
    """The objects, without those deleted since the view was made."""
    for start in range(0, len(refs), _AT_ONCE):
        some = (starting(ref) for ref in refs[start : start + _AT_ONCE])
        yield from session.retrieve_readable(ask(wanted, *some, or_gone=True))


def _known(session: Session, kind: type, paths: Iterable[str]) -> Wanted:
    return {kind: session.known(kind, paths)}


def _hosts(changes: Changes) -> tuple[dict[str, HostFacts], list[Unseen]]:
    """The hosts that can be judged; a disconnected one shows outdated values."""
    hosts, unseen, objects = {}, [], changes.objects
    for ref, found in objects.items():
        if not isinstance(ref, vim.HostSystem):
            continue
        known = changes.hardware.get(ref)
        needed = HOST_NEEDED if known is None else HOST_NEEDED_NOW
        name, state = found.values.get("name", ref._GetMoId()), connection_of(found)
        if state != CONNECTED:
            unseen.append(Unseen("host", name, f"{state} according to vCenter"))
        elif any(path not in found.values for path in needed):
            unseen.append(Unseen("host", name, _why(found, needed)))
        else:
            drs = drs_of(found, objects)
            facts = host_facts(found, drs) if known is None else host_as_now(known, found, drs)
            hosts[facts.moid] = replace(facts, advanced=changes.options.get(ref))
    return hosts, unseen


def _why_no_host(vm: ReadObject, host: ReadObject | None) -> str:
    """Why a VM's host cannot be judged."""
    if not vm.values.get("runtime.host"):
        return f"the VM has no host ({connection_of(vm)})"
    if host is None or connection_of(host) == CONNECTED:
        return "the VM's host may not be read"
    return f"{host.values.get('name', 'its host')} is {connection_of(host)}"


def _vms(
    session: Session,
    changes: Changes,
    hosts: Mapping[str, HostFacts],
    unseen: list[Unseen],
    uncounted: set[str],
) -> Iterator[EstateVm]:
    """The readable VMs. Others go to `unseen`, and their hosts, whose memory they may use, to `uncounted`."""
    objects, overrides = changes.objects, dict[Any, str | None]()
    for ref, found in objects.items():
        if isinstance(ref, vim.ClusterComputeResource):
            overrides |= drs_overrides(found.values.get("configurationEx"))
    for ref, found in objects.items():
        if not isinstance(ref, vim.VirtualMachine) or found.values.get("config.template"):
            continue
        host = found.values.get("runtime.host")
        moid = host._GetMoId() if host else ""
        taken = changes.taken.get(ref)
        if taken is None and any(path not in found.values for path in _VM_NEEDED):
            name = found.values.get("name", ref._GetMoId())
            unseen.append(Unseen("vm", name, _why(found, _VM_NEEDED)))
            uncounted.add(moid)
            continue
        host_found = objects.get(host)
        try:
            with session.understanding():
                place = Place(
                    path_of(found, objects),
                    host_found.values.get("name", "") if host_found else "",
                    overrides.get(ref),
                )
                facts = (
                    vm_facts(session.about.uuid, found, place, settings.FOR_RULES)
                    if taken is None
                    else moved_facts(taken.facts, found, place)
                )
        except VCenterUnreachable as error:
            unseen.append(Unseen("vm", found.values["name"], error.what))
            uncounted.add(moid)
            continue
        absent = _absent(found)
        if moid not in hosts:
            absent["host"] = _why_no_host(found, host_found)
        if absent:
            kept = {name: value for name, value in facts.settings.items() if name not in absent}
            facts = replace(facts, settings=kept)
        yield EstateVm(facts, absent, guest=_windows(found))


def _windows(found: ReadObject) -> WindowsFacts | None:
    """Windows as reported by Tools."""
    one = found.values.get(TOOLS_PATH)
    options = found.values.get(settings.EXTRA_CONFIG) or ((one,) if one else ())
    written = next((str(option.value) for option in options if option.key == TOOLS_KEY), "")
    detail = found.values.get(GUEST_DETAIL) or written
    return windows_of_tools(detail, found.values.get(GUEST_NAME, ""))


def _absent(found: ReadObject) -> dict[str, str]:
    """Settings that could not be read, with the reason."""
    reasons = _reasons(found)
    if not reasons:
        return {}
    named = {path: name for name, path in settings.LEAVES.items()} | {settings.EXTRA_CONFIG: EXTRA_CONFIG}
    return {named[path]: why for path, why in reasons.items() if path in named}


def _why(found: ReadObject, needed: Iterable[str]) -> str:
    """Why required properties are missing."""
    reasons = _reasons(found)
    named = [reasons[path] for path in needed if path in reasons]
    return named[0] if named else f"vCenter shows no configuration ({connection_of(found)})"


def _reasons(found: ReadObject) -> dict[str, str]:
    """Why properties could not be read, by path."""
    return {**found.unread, **{path: _in_words(fault) for path, fault in found.missing.items()}}


def _in_words(fault: vmodl.MethodFault) -> str:
    if isinstance(fault, vim.fault.NoPermission):
        return f"the account lacks the privilege {fault.privilegeId or 'System.Read'}"
    return describe(fault)


def _with_others(objects: Mapping[Any, ReadObject]) -> set[str]:
    """Hosts that have VMs which the account does not see: their memory cannot be added up."""
    return {
        ref._GetMoId()
        for ref, found in objects.items()
        if isinstance(ref, vim.HostSystem) and any(vm not in objects for vm in found.values.get("vm", ()))
    }


def _with_memory(
    hosts: Mapping[str, HostFacts], vms: Iterable[EstateVm], uncounted: set[str]
) -> dict[str, HostFacts]:
    """Hosts with the memory of their running VMs, except where a VM could not be read."""
    running = running_memory(vms)
    return {
        moid: host if moid in uncounted else replace(host, powered_on_mb=running[moid])
        for moid, host in hosts.items()
    }


def _clusters(objects: Mapping[Any, ReadObject], hosts: Mapping[str, HostFacts]) -> Iterator[ClusterFacts]:
    """Clusters with their hosts; a standalone host is a cluster of one."""
    members: dict[Any, list[HostFacts]] = defaultdict(list)
    unread: dict[Any, list[str]] = defaultdict(list)
    for ref, found in objects.items():
        if isinstance(ref, vim.HostSystem):
            facts = hosts.get(ref._GetMoId())
            if facts:
                members[found.values.get("parent")].append(facts)
            else:
                unread[found.values.get("parent")].append(found.values.get("name", ref._GetMoId()))
    for parent, some in members.items():
        if parent not in objects:
            in_cluster = isinstance(parent, vim.ClusterComputeResource)
            for host in some:
                yield ClusterFacts(host.moid, host.name, None if in_cluster else False, (host,))
    for ref, found in objects.items():
        if isinstance(ref, vim.ClusterComputeResource):
            drs = found.values.get("configurationEx")
            enabled = None if drs is None else bool(drs.drsConfig.enabled)
            name = found.values.get("name", ref._GetMoId())
            yield ClusterFacts(ref._GetMoId(), name, enabled, tuple(members[ref]), tuple(unread[ref]))
