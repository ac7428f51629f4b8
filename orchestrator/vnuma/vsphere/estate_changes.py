"""What changed in a vCenter since an earlier reading: only those VMs are read in full again.

`config.changeVersion` changes with every change to a VM's configuration, and only equality counts
(https://developer.broadcom.com/xapis/vsphere-web-services-api/latest/vim.vm.ConfigInfo.html). It covers
what lies under `config`, the name with it. Whatever else rules ask for is read anew: power, host, folder,
guest, DRS, hosts, clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyVmomi import vim

from vnuma.domain.vm.estate import EstateVm
from vnuma.domain.vm.guest_os import TOOLS_KEY, windows_of_tools
from vnuma.vsphere.facts import GUEST_DETAIL, GUEST_NAME
from vnuma.vsphere.inventory import VAPP_VMS, container_properties
from vnuma.vsphere.session import Found, Query, Session
from vnuma.vsphere.settings import EXTRA_CONFIG

TOOLS_PATH = f'{EXTRA_CONFIG}["{TOOLS_KEY}"]'
"""One key of extraConfig, which the property collector gives without the others."""

_VERSION = "config.changeVersion"
_MARKS = (_VERSION, "runtime.powerState", GUEST_DETAIL)
"""What is read of every VM: what tells a changed configuration, and what may change without."""

GUEST_MARKS = (TOOLS_PATH, GUEST_NAME)
"""What is read besides where the guest's details do not say that the same Windows runs as before."""


@dataclass(frozen=True)
class Changes:
    """Hosts, clusters and folders as they are; VMs to be read; those that have not changed, and of these
    the ones whose guest (`GUEST_MARKS`) is still to be read.
    """

    objects: dict[Any, Found] = field(default_factory=dict)
    changed: list[vim.VirtualMachine] = field(default_factory=list)
    taken: dict[Any, EstateVm] = field(default_factory=dict)
    guests: list[vim.VirtualMachine] = field(default_factory=list)


def find_changes(
    session: Session,
    view: vim.view.ContainerView,
    known: Mapping[str, EstateVm],
    others: Sequence[Query.PropertySpec],
) -> Changes:
    """Sort the VMs of a view into changed and unchanged; `others` are what to read of hosts and clusters."""
    marks = session.known(vim.VirtualMachine, _MARKS)
    inside = Query.TraversalSpec(type=vim.view.ContainerView, path="view", skip=False)
    everything = Query.FilterSpec(
        objectSet=[Query.ObjectSpec(obj=view, skip=True, selectSet=[inside])],
        propSet=[
            Query.PropertySpec(type=vim.VirtualMachine, pathSet=marks),
            *others,
            *container_properties(contents=True),
        ],
    )
    read = session.retrieve([everything])
    vms = [one for one in read if isinstance(one.ref, vim.VirtualMachine)]
    found = Changes({one.ref: one for one in read if not isinstance(one.ref, vim.VirtualMachine)})
    places = _places(found.objects.values())
    for mark in vms:
        earlier, place = known.get(mark.ref._GetMoId()), places.get(mark.ref, {})
        if earlier and len(place) == _HOST_AND_FOLDER and _is_unchanged(session, mark, earlier):
            found.taken[mark.ref] = earlier
            told = {"name": earlier.facts.name}
            if _has_same_windows(mark, earlier):
                told[GUEST_NAME] = earlier.facts.guest_full_name
            else:
                found.guests.append(mark.ref)
            found.objects[mark.ref] = Found(mark.ref, {**mark.values, **place, **told}, {})
        else:
            found.changed.append(mark.ref)
    return found


_HOST_AND_FOLDER = 2


def _is_unchanged(session: Session, mark: Found, earlier: EstateVm) -> bool:
    """Whether the earlier facts hold. What the account could not read then, or cannot now, is read again."""
    facts, version = earlier.facts, mark.values.get(_VERSION)
    return (
        bool(version)
        and version == facts.change_version
        and facts.vcenter_uuid == session.about.uuid
        and earlier.absent.keys() <= {"host"}
        and not mark.missing
    )


def _has_same_windows(mark: Found, earlier: EstateVm) -> bool:
    """Whether the guest's details name the Windows that ran before; an older vCenter has no details."""
    now = windows_of_tools(mark.values.get(GUEST_DETAIL, ""))
    return now is not None and now == earlier.guest


def _places(objects: Iterable[Found]) -> dict[Any, dict[str, Any]]:
    """Each VM's host and folder, by what these say they hold: a list each instead of two values a VM."""
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
