"""Find a VM by name, by inventory path, or by the UUID that survives renaming."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from urllib.parse import unquote

from pyVmomi import vim

from vnuma.errors import VmNotFound
from vnuma.vsphere.inventory import paths
from vnuma.vsphere.session import Query, Session

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
        raise _several(name_or_path, list(paths(session, refs)))
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
    elsewhere = list(paths(session, namesakes)) if namesakes else []
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
        each = Query.TraversalSpec(type=vim.view.ContainerView, path="view", skip=False)
        filters = [
            Query.FilterSpec(
                objectSet=[Query.ObjectSpec(obj=view, skip=True, selectSet=[each])],
                propSet=[Query.PropertySpec(type=vim.VirtualMachine, pathSet=["name"])],
                reportMissingObjectsInResults=True,
            )
        ]
        # vSphere writes / and \ in a name as %2f and %5c.
        return {
            found.ref: unquote(found.values["name"])
            for found in session.retrieve(filters)
            if isinstance(found.ref, vim.VirtualMachine) and "name" in found.values
        }
    finally:
        view.DestroyView()


def _several(name: str, found: list[str]) -> VmNotFound:
    listed = found if len(found) <= _LISTED else [*found[: _LISTED - 1], f"{len(found) - _LISTED + 1} more"]
    return VmNotFound(
        f"{_NUMBERS.get(len(found), str(len(found)))} VMs are named {name}: "
        f"{', '.join(listed[:-1])} and {listed[-1]}.",
        fix=f"Give the path: vm: {found[0]}",
    )


def _none(name: str, known: list[str], where: str) -> VmNotFound:
    close = get_close_matches(name, sorted(set(known)), n=3)
    if close:
        fix = f"Did you mean {' or '.join(close)}?"
    else:
        fix = f"The account sees {len(known)} VMs there; check its name and the account's permissions."
    return VmNotFound(f"No VM is named {name} on {where}.", fix=fix)
