"""Everything around a VM that may spoil a study: neighbours, tasks, devices, HA, licence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pyVmomi import vim

from vnuma.domain.vm.endpoint import VmSide
from vnuma.domain.vm.role import Where
from vnuma.domain.vm.surroundings import Limit, Surroundings
from vnuma.errors import EnvironmentProblem
from vnuma.vsphere.read import host_filter, host_trouble
from vnuma.vsphere.session import Query, ReadObject, Session, along, ask, starting
from vnuma.vsphere.uptime import CLOCK_PATH, RUNNING_PATHS, vm_side_of

_LIMITS = ("config.memoryAllocation.limit", "config.cpuAllocation.limit")
_MHZ = "summary.hardware.cpuMhz"
_POOLS = "pools"
_VM_PATHS = (
    "name",
    "recentTask",
    "runtime.faultToleranceState",
    "config.changeTrackingEnabled",
    "config.hardware.device",
    "config.keyId",
    "config.managedBy",
    "guest.hostName",
    "resourcePool",
    "config.hardware.memoryMB",
    "config.hardware.numCPU",
    *_LIMITS,
    *RUNNING_PATHS,
)
_NEIGHBOUR_PATHS = ("name", "runtime.powerState", "summary.config.memorySizeMB")
_MOVES = frozenset({"VirtualMachine.migrate", "VirtualMachine.relocate", "Drm.ExecuteVMotionLRO"})
_FREE_EDITION = "esxBasic"


def read_surroundings(session: Session, ref: vim.VirtualMachine) -> Surroundings:
    """Read everything around a VM, except what the account may not see. Raises PrivilegeMissing if it may not
    see the VM itself.
    """
    licences = ask({vim.LicenseManager: ("licenses",)}, starting(session.content.licenseManager))
    around = surroundings_filter(session, ref)
    # Only name and power of every VM on the same host; a busy host has too many to read more.
    there = along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "vm"), skip=True)
    neighbours = ask({vim.VirtualMachine: _NEIGHBOUR_PATHS}, starting(ref, there, wanted=False))
    found = session.retrieve(host_filter(ref), neighbours, licences, around)
    with session.understanding():
        return _surroundings(session, ref, found)


def _surroundings(session: Session, ref: vim.VirtualMachine, found: Sequence[ReadObject]) -> Surroundings:
    objects = {item.ref: item for item in found}  # the VM itself comes twice; keep its own filter's, the last
    running = {
        item.ref: item.values
        for item in found
        if isinstance(item.ref, vim.VirtualMachine)
        and str(item.values.get("runtime.powerState")) == "poweredOn"
    }
    vm = objects[ref]
    session.require(vm)
    values = vm.values
    recent = (objects.get(task) for task in values.get("recentTask") or ())
    tasks = [task.values["info"] for task in recent if task and "info" in task.values]
    devices = values.get("config.hardware.device") or ()
    manager = values.get("config.managedBy")
    passthrough = vim.vm.device.VirtualPCIPassthrough | vim.vm.device.VirtualSriovEthernetCard
    raw = vim.vm.device.VirtualDisk.RawDiskMappingVer1BackingInfo
    ha_clusters = _ha_clusters(objects)
    return Surroundings(
        neighbours=tuple(
            sorted(str(there.get("name", "")) for other, there in running.items() if other != ref)
        ),
        powered_on_mb={
            other._GetMoId(): int(there.get("summary.config.memorySizeMB") or 0)
            for other, there in running.items()
        },
        fault_tolerance=str(values.get("runtime.faultToleranceState")) not in ("notConfigured", "None"),
        running_tasks=tuple(
            str(info.descriptionId) for info in tasks if str(info.state) in ("running", "queued")
        ),
        moved_minutes_ago=_moved(tasks),
        change_tracking=bool(values.get("config.changeTrackingEnabled")),
        shared_disks=tuple(_labels(device for device in devices if _is_shared(device))),
        raw_disks=tuple(
            _labels(device for device in devices if isinstance(getattr(device, "backing", None), raw))
        ),
        passthrough=tuple(_labels(device for device in devices if isinstance(device, passthrough))),
        virtual_tpm=any(isinstance(device, vim.vm.device.VirtualTPM) for device in devices),
        encrypted="config.keyId" in values,
        managed_by=str(manager.extensionKey) if manager and manager.extensionKey else None,
        high_availability=bool(ha_clusters),
        admission_control=any(cluster.dasConfig.admissionControlEnabled for cluster in ha_clusters),
        heartbeat_watched=any(_watches(cluster, ref) for cluster in ha_clusters),
        guest_name=values.get("guest.hostName") or None,
        running=_running(session, values, objects),
        limits=tuple(_limits(vm, objects)),
        host_trouble=host_trouble(found),
        free_licence=_is_free(objects.get(session.content.licenseManager)),
    )


def _limits(vm: ReadObject, objects: Mapping[Any, ReadObject]) -> Iterator[Limit]:
    """The lowest limit of each resource, from the VM or a pool above it, if below what the VM has.

    All members share a pool's limit, so it is the most that the VM can get.
    """
    host = objects.get(vm.values.get("runtime.host"))
    mhz = int(host.values.get(_MHZ) or 0) if host else 0
    has = {
        "memory": int(vm.values.get("config.hardware.memoryMB") or 0),
        "CPU": int(vm.values.get("config.hardware.numCPU") or 0) * mhz,
    }
    setters = [vm, *(found for found in objects.values() if _is_in_a_pool(found))]
    resources: tuple[Literal["memory", "CPU"], ...] = ("memory", "CPU")
    for resource, path in zip(resources, _LIMITS, strict=True):
        limits = [
            (int(limit), one is not vm) for one in setters if (limit := one.values.get(path)) is not None
        ]
        lowest = min((one for one in limits if one[0] >= 0), default=None)
        if lowest and lowest[0] < has[resource]:
            yield Limit(resource, lowest[0], has[resource], of_pool=lowest[1])


def _is_in_a_pool(found: ReadObject) -> bool:
    """Whether this is a resource pool other than the root, whose limits are those of host or cluster."""
    return isinstance(found.ref, vim.ResourcePool) and isinstance(
        found.values.get("parent"), vim.ResourcePool
    )


def _running(session: Session, values: Mapping[str, Any], objects: Mapping[Any, ReadObject]) -> VmSide | None:
    """Facts that identify a running VM from outside; None if it is off."""
    booted, host = values.get("runtime.bootTime"), objects.get(values.get("runtime.host"))
    if not isinstance(booted, datetime):
        return None
    return vm_side_of(session, values, booted, host.values.get(CLOCK_PATH) if host else None)


def surroundings_filter(session: Session, ref: vim.VirtualMachine) -> Query.FilterSpec:
    """The VM, its recent tasks and its host's cluster."""
    pools = along(vim.ResourcePool, "parent", Query.SelectionSpec(name=_POOLS), name=_POOLS)
    around = (
        along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "parent")),
        along(vim.VirtualMachine, "recentTask"),
        along(vim.VirtualMachine, "resourcePool", pools),
    )
    wanted = {
        vim.ResourcePool: ("parent", *_LIMITS),
        vim.VirtualMachine: session.known(vim.VirtualMachine, _VM_PATHS),
        vim.Task: ("info",),
        vim.HostSystem: (CLOCK_PATH, _MHZ),
        vim.ClusterComputeResource: ("configurationEx",),
    }
    return ask(wanted, starting(ref, *around))


def _moved(tasks: Iterable[Any]) -> float | None:
    ended = [
        info.completeTime
        for info in tasks
        if info.descriptionId in _MOVES and info.completeTime and str(info.state) == "success"
    ]
    return (datetime.now(UTC) - max(ended)).total_seconds() / 60 if ended else None


def _labels(devices: Iterable[Any]) -> Iterator[str]:
    for device in devices:
        yield str(device.deviceInfo.label) if device.deviceInfo else f"device {device.key}"


def _is_shared(device: Any) -> bool:
    """A multi-writer disk, or a controller whose bus other VMs share."""
    bus = getattr(device, "sharedBus", None)
    sharing = getattr(getattr(device, "backing", None), "sharing", None)
    return str(sharing) == "sharingMultiWriter" or str(bus) in ("physicalSharing", "virtualSharing")


def _ha_clusters(objects: Mapping[Any, ReadObject]) -> list[Any]:
    """The configurations of clusters with vSphere HA on."""
    clusters = [
        found.values["configurationEx"]
        for ref, found in objects.items()
        if isinstance(ref, vim.ClusterComputeResource) and "configurationEx" in found.values
    ]
    return [cluster for cluster in clusters if cluster.dasConfig and cluster.dasConfig.enabled]


def _watches(cluster: Any, ref: vim.VirtualMachine) -> bool:
    """Whether VM monitoring is on for the VM, by its own setting or its cluster's.

    https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/ClusterDasConfigInfoVmMonitoringState_enum
    """
    settings = [one.dasSettings for one in cluster.dasVmConfig or () if one.key == ref and one.dasSettings]
    own = next((one.vmToolsMonitoringSettings for one in settings if one.vmToolsMonitoringSettings), None)
    state = cluster.dasConfig.vmMonitoring
    if own is not None and own.clusterSettings is False:
        state = own.vmMonitoring
    return state in ("vmMonitoringOnly", "vmAndAppMonitoring")


def _is_free(manager: ReadObject | None) -> bool | None:
    """Whether every licence is the free hypervisor's; None where licences are not visible."""
    licences = manager.values.get("licenses") if manager else None
    if not licences:
        return None
    return all(licence.editionKey == _FREE_EDITION for licence in licences)


@dataclass(frozen=True)
class Place:
    """An inventory object on which privileges are checked."""

    ref: vim.ManagedEntity
    name: str


def missing_privileges(
    session: Session, ref: vim.ManagedEntity, privileges: Iterable[str]
) -> tuple[str, ...]:
    """The privileges that the account lacks on an object, sorted.

    Raises PrivilegeMissing when the account may not even ask.
    """
    wanted = sorted(set(privileges))
    manager = session.content.authorizationManager
    return _lacking(wanted, manager.HasPrivilegeOnEntities([ref], session.key, wanted))


def _lacking(wanted: Iterable[str], answers: Iterable[Any]) -> tuple[str, ...]:
    granted = {entry.privId for answer in answers for entry in answer.privAvailability if entry.isGranted}
    return tuple(name for name in wanted if name not in granted)


def places_of(session: Session, ref: vim.VirtualMachine) -> Mapping[Where, Mapping[vim.ManagedEntity, str]]:
    """The objects, with their names, on which a VM's study needs privileges, as far as this server has them.

    A standalone host has no cluster, an ESXi host by itself no custom attributes.
    """
    host = along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "parent"), skip=True)
    vm = starting(ref, host, along(vim.VirtualMachine, "datastore"))
    kinds = (vim.VirtualMachine, vim.Datastore, vim.ClusterComputeResource, vim.Folder)
    wanted = dict.fromkeys(kinds, ("name",))
    found = session.retrieve(ask(wanted, vm, starting(session.content.rootFolder)))

    def of(kind: type[vim.ManagedEntity]) -> dict[vim.ManagedEntity, str]:
        return {one.ref: str(one.values.get("name", one.ref)) for one in found if isinstance(one.ref, kind)}

    attributes = session.content.customFieldsManager is not None
    return {
        "datastore": of(vim.Datastore),
        "cluster": of(vim.ClusterComputeResource),
        "root": of(vim.Folder),
        "attributes": of(vim.VirtualMachine) if attributes else {},
    }


READ_ONLY = "ReadOnly"


Role = vim.AuthorizationManager.Role


def find_role(session: Session, name: str) -> Role | None:
    return next((role for role in session.content.authorizationManager.roleList if role.name == name), None)


def save_role(session: Session, name: str, privileges: Iterable[str]) -> Role:
    """Create the role, or add missing privileges; others stay. Raises PrivilegeMissing."""
    manager = session.content.authorizationManager
    role = find_role(session, name)
    if role is None:
        manager.AddAuthorizationRole(name=name, privIds=sorted(privileges))
    elif not set(privileges) <= set(role.privilege):
        both = sorted({*role.privilege, *privileges})
        manager.UpdateAuthorizationRole(roleId=role.roleId, newName=name, privIds=both)
    saved = find_role(session, name)
    if saved is None:
        raise EnvironmentProblem(
            f"{session.transport.vcenter.address} accepted the role {name}, but does not show it.",
            fix="Check Administration, Roles in vCenter.",
        )
    return saved


def role_on(session: Session, entity: vim.ManagedEntity, principal: str) -> int | None:
    """The id of a user's role on exactly this object; None without a permission there."""
    found = session.content.authorizationManager.RetrieveEntityPermissions(entity=entity, inherited=False)
    for permission in found or ():
        if not permission.group and same_principal(permission.principal, principal):
            return int(permission.roleId)
    return None


def give(session: Session, entity: vim.ManagedEntity, principal: str, role: Role, *, propagate: bool) -> None:
    """Give a user a role on an object; other users' permissions stay. Raises PrivilegeMissing."""
    permission = vim.AuthorizationManager.Permission(
        entity=entity, principal=principal, group=False, roleId=role.roleId, propagate=propagate
    )
    session.content.authorizationManager.SetEntityPermissions(entity=entity, permission=[permission])


def privileges_lacking(
    session: Session, entity: vim.ManagedEntity, principal: str, privileges: Iterable[str]
) -> tuple[str, ...]:
    """The privileges that a user, not necessarily the one logged in, lacks there."""
    wanted = sorted(set(privileges))
    manager = session.content.authorizationManager
    return _lacking(wanted, manager.HasUserPrivilegeOnEntities([entity], principal, wanted))


def same_principal(left: str, right: str) -> bool:
    r"""Whether two spellings mean the same user: `study@corp.local` and `CORP.LOCAL\study`."""
    return _parts(left) == _parts(right)


def _parts(principal: str) -> tuple[str, str]:
    text = principal.casefold()
    if "\\" in text:
        domain, _, name = text.partition("\\")
        return name, domain
    name, _, domain = text.partition("@")
    return name, domain
