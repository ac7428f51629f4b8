"""What the account may do on a VM, checked before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyVmomi import vim

from vnuma.domain.vm.role import Where
from vnuma.vsphere.session import Query, Session


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
    answers = session.content.authorizationManager.HasPrivilegeOnEntities([ref], session.key, wanted)
    granted = {entry.privId for answer in answers for entry in answer.privAvailability if entry.isGranted}
    return tuple(name for name in wanted if name not in granted)


def places_of(session: Session, ref: vim.VirtualMachine) -> Mapping[Where, tuple[Place, ...]]:
    """The objects on which a VM's study needs privileges, without those that this server lacks.

    A standalone host has no cluster, an ESXi host by itself no custom attributes.
    """
    cluster = Query.TraversalSpec(type=vim.HostSystem, path="parent", skip=False)
    host = Query.TraversalSpec(type=vim.VirtualMachine, path="runtime.host", skip=True, selectSet=[cluster])
    stores = Query.TraversalSpec(type=vim.VirtualMachine, path="datastore", skip=False)
    root = session.content.rootFolder
    kinds = (vim.VirtualMachine, vim.Datastore, vim.ClusterComputeResource, vim.Folder)
    found = session.retrieve(
        [
            Query.FilterSpec(
                objectSet=[
                    Query.ObjectSpec(obj=ref, skip=False, selectSet=[host, stores]),
                    Query.ObjectSpec(obj=root, skip=False),
                ],
                propSet=[Query.PropertySpec(type=kind, pathSet=["name"]) for kind in kinds],
            )
        ]
    )
    places = [Place(item.ref, str(item.values.get("name", item.ref))) for item in found]

    def of(kind: type) -> tuple[Place, ...]:
        return tuple(place for place in places if isinstance(place.ref, kind))

    attributes = session.content.customFieldsManager is not None
    return {
        "datastore": of(vim.Datastore),
        "cluster": of(vim.ClusterComputeResource),
        "root": of(vim.Folder),
        "attributes": of(vim.VirtualMachine) if attributes else (),
    }
