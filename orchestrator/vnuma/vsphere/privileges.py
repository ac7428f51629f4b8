"""What the account may do on a VM, checked before anything is touched; roles and permissions of vCenter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyVmomi import vim

from vnuma.domain.vm.role import Where
from vnuma.errors import EnvironmentProblem
from vnuma.vsphere.query import along, ask, starting
from vnuma.vsphere.session import Session


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
    host = along(vim.VirtualMachine, "runtime.host", along(vim.HostSystem, "parent"), skip=True)
    vm = starting(ref, host, along(vim.VirtualMachine, "datastore"))
    kinds = (vim.VirtualMachine, vim.Datastore, vim.ClusterComputeResource, vim.Folder)
    wanted = dict.fromkeys(kinds, ("name",))
    found = session.retrieve(ask(wanted, vm, starting(session.content.rootFolder)))
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


READ_ONLY = "ReadOnly"


@dataclass(frozen=True)
class Role:
    """A role in vCenter."""

    id: int
    name: str
    privileges: frozenset[str]


def find_role(session: Session, name: str) -> Role | None:
    for role in session.content.authorizationManager.roleList:
        if role.name == name:
            return Role(role.roleId, role.name, frozenset(role.privilege))
    return None


def save_role(session: Session, name: str, privileges: Iterable[str]) -> Role:
    """Create the role, or add missing privileges; others stay. Raises PrivilegeMissing."""
    manager = session.content.authorizationManager
    role = find_role(session, name)
    if role is None:
        manager.AddAuthorizationRole(name=name, privIds=sorted(privileges))
    elif not set(privileges) <= role.privileges:
        manager.UpdateAuthorizationRole(
            roleId=role.id, newName=name, privIds=sorted(role.privileges | set(privileges))
        )
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
        entity=entity, principal=principal, group=False, roleId=role.id, propagate=propagate
    )
    session.content.authorizationManager.SetEntityPermissions(entity=entity, permission=[permission])


def privileges_lacking(
    session: Session, entity: vim.ManagedEntity, principal: str, privileges: Iterable[str]
) -> tuple[str, ...]:
    """The privileges that a user, not necessarily the one logged in, lacks there."""
    wanted = sorted(set(privileges))
    answers = session.content.authorizationManager.HasUserPrivilegeOnEntities([entity], principal, wanted)
    granted = {entry.privId for answer in answers for entry in answer.privAvailability if entry.isGranted}
    return tuple(name for name in wanted if name not in granted)


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
