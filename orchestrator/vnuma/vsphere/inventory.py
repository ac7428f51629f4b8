"""Inventory paths: an object's folders, read together with the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyVmomi import vim

from vnuma.vsphere.session import Found, Query, Session

# Traversals refer to each other by name, which makes the property collector recurse.
_UP, _OUT_OF_VAPP = "up", "out of a vApp"
# A vApp is a resource pool among VMs, with `parentFolder`; a nested one has only `parent`.
# https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.VirtualApp.html
_VAPP_PLACES = ("parentFolder", "parent")
VAPP_VMS = "vm"
"""The VMs of a vApp."""


def upwards() -> list[Query.SelectionSpec]:
    """The traversal from a VM through vApps, folders and datacenter to the root folder."""
    again = [Query.SelectionSpec(name=name) for name in (_UP, _OUT_OF_VAPP)]
    return [
        Query.TraversalSpec(name=_UP, type=vim.ManagedEntity, path="parent", skip=False, selectSet=again),
        Query.TraversalSpec(
            name=_OUT_OF_VAPP, type=vim.VirtualApp, path="parentFolder", skip=False, selectSet=again
        ),
        Query.TraversalSpec(type=vim.VirtualMachine, path="parentVApp", skip=False, selectSet=again),
    ]


def container_properties(*, contents: bool = False) -> list[Query.PropertySpec]:
    """The container properties that `path_of` needs; with `contents`, also what they contain."""
    children, vms = (["childEntity"], [VAPP_VMS]) if contents else ([], [])
    return [
        Query.PropertySpec(type=vim.Folder, pathSet=["name", "parent", *children]),
        Query.PropertySpec(type=vim.Datacenter, pathSet=["name", "parent"]),
        Query.PropertySpec(type=vim.VirtualApp, pathSet=["name", *_VAPP_PLACES, *vms]),
    ]


def path_of(vm: Found, objects: Mapping[vim.ManagedEntity, Found]) -> str:
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


def _above(container: Found) -> vim.ManagedEntity | None:
    """A container's parent."""
    places = _VAPP_PLACES if isinstance(container.ref, vim.VirtualApp) else ("parent",)
    return next((container.values[place] for place in places if container.values.get(place)), None)


def paths(session: Session, refs: Iterable[vim.ManagedEntity]) -> dict[str, vim.ManagedEntity]:
    """One or more VMs by inventory path, in path order, in one read."""
    filters = [
        Query.FilterSpec(
            objectSet=[Query.ObjectSpec(obj=ref, skip=False, selectSet=upwards()) for ref in refs],
            propSet=[
                Query.PropertySpec(type=vim.VirtualMachine, pathSet=["name", "parent", "parentVApp"]),
                *container_properties(),
            ],
        )
    ]
    objects = {found.ref: found for found in session.retrieve(filters)}
    with session.understanding():
        named = {
            path_of(found, objects): ref
            for ref, found in objects.items()
            if isinstance(ref, vim.VirtualMachine)
        }
    return dict(sorted(named.items()))
