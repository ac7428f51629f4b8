"""Inventory paths: an object's folders, read together with the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyVmomi import vim

from vnuma.vsphere.session import Query, ReadObject, Session, Wanted, along, ask, starting

# Traversals refer to each other by name, which makes the property collector recurse.
_UP, _OUT_OF_VAPP = "up", "out of a vApp"
# A vApp is a resource pool among VMs, with `parentFolder`; a nested one has only `parent`.
# https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.VirtualApp.html
_VAPP_PLACES = ("parentFolder", "parent")
VAPP_VMS = "vm"
"""The VMs of a vApp."""

CONTAINERS: Wanted = {
    vim.Folder: ("name", "parent"),
    vim.Datacenter: ("name", "parent"),
    vim.VirtualApp: ("name", *_VAPP_PLACES),
}
"""The properties of containers that `path_of` needs."""

CONTENTS: Wanted = {
    vim.Folder: ("name", "parent", "childEntity"),
    vim.Datacenter: ("name", "parent"),
    vim.VirtualApp: ("name", *_VAPP_PLACES, VAPP_VMS),
}
"""The same, and what they contain."""


def upwards() -> list[Query.SelectionSpec]:
    """The traversal from a VM through vApps, folders and datacenter to the root folder."""
    again = [Query.SelectionSpec(name=name) for name in (_UP, _OUT_OF_VAPP)]
    return [
        along(vim.ManagedEntity, "parent", *again, name=_UP),
        along(vim.VirtualApp, "parentFolder", *again, name=_OUT_OF_VAPP),
        along(vim.VirtualMachine, "parentVApp", *again),
    ]


def path_of(vm: ReadObject, objects: Mapping[vim.ManagedEntity, ReadObject]) -> str:
    """The inventory path, such as `/DC1/vm/Test/sql16`, without the root folder.

    Raises ValueError for a folder that contains itself.
    """
    names = [vm.values.get("name", "")]
    parent = vm.values.get("parent") or vm.values.get("parentVApp")
    while parent is not None and (container := objects.get(parent)) is not None:
        if len(names) > len(objects):
            raise ValueError(f"the folder of {names[0]} contains itself")
        above = _above(container)
        if above is not None:
            names.append(container.values.get("name", ""))
        parent = above
    return "/" + "/".join(reversed(names))


def _above(container: ReadObject) -> vim.ManagedEntity | None:
    places = _VAPP_PLACES if isinstance(container.ref, vim.VirtualApp) else ("parent",)
    return next((container.values[place] for place in places if container.values.get(place)), None)


def paths(session: Session, refs: Iterable[vim.ManagedEntity]) -> dict[str, vim.ManagedEntity]:
    """One or more VMs by inventory path, in path order, in one read."""
    wanted = {vim.VirtualMachine: ("name", "parent", "parentVApp"), **CONTAINERS}
    found = session.retrieve(ask(wanted, *(starting(ref, *upwards()) for ref in refs)))
    objects = {one.ref: one for one in found}
    with session.understanding():
        named = {
            path_of(vm, objects): ref for ref, vm in objects.items() if isinstance(ref, vim.VirtualMachine)
        }
    return dict(sorted(named.items()))
