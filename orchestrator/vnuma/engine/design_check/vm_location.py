"""Where a VM runs, or is to run: the VM as it is, and every host that it may be powered on on."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import Estate, EstateVm
from vnuma.engine.design_check import estates
from vnuma.errors import InputError, VmNotFound
from vnuma.estate import snapshot


def location_of_vm(name: str, file: Path | None, inventory: Path | None) -> VmLocation:
    """A VM, by name or inventory path, with its host's cluster: from a snapshot, or read from vCenter now.

    Raises VmNotFound, and InputError where its host could not be read.
    """
    estate, found = _in_snapshot(name, file) if file else _read(name, _needed(inventory))
    vm = found.facts
    own = estate.hosts.get(vm.host_moid)
    if own is None:
        raise InputError(
            f"The host of {vm.name} ({vm.host_name or 'none'}) could not be read.",
            fix="Describe it: --host-nodes 2x16/96@8.0 (NUMA nodes x cores / GB of a node @ ESXi).",
        )
    cluster = estate.cluster_of[own.moid]
    others = tuple(host for host in cluster.hosts if host.moid != own.moid)
    return VmLocation((own, *others), vm, cluster.unread, estate.simulated, tuple(found.absent))


def _read(name: str, inventory: Path) -> tuple[Estate, EstateVm]:
    (estate,) = estates.read_some(inventory, [name])
    if not estate.vms:
        why = next((f" ({item.why})" for item in estate.unseen if item.kind == "vm"), "")
        raise VmNotFound(f"{name} could not be read{why}.", fix="vnuma doctor shows what is missing.")
    return estate, estate.vms[0]


def _in_snapshot(name: str, file: Path) -> tuple[Estate, EstateVm]:
    matches = [
        (estate, one)
        for estate in snapshot.load(file)
        for one in estate.vms
        if name in {one.facts.name, one.facts.path}
    ]
    if not matches:
        raise VmNotFound(f"{file} contains no VM named {name}.", fix="Check its name.")
    if len(matches) > 1:
        paths = ", ".join(vm.facts.path for _, vm in matches)
        raise VmNotFound(f"{len(matches)} VMs are named {name}: {paths}.", fix="Give the inventory path.")
    return matches[0]


def location_of_cluster(name: str, file: Path | None, inventory: Path | None) -> VmLocation:
    """The hosts of a cluster, by its name or by a pattern that only one matches.

    From a snapshot, or read from vCenter now. Raises InputError for an unknown one.
    """
    found: Iterable[Estate] = snapshot.load(file) if file else estates.read_all(_needed(inventory))
    known = [(estate, cluster) for estate in found for cluster in estate.clusters]
    matches = [pair for pair in known if pair[1].name == name]
    matches = matches or [pair for pair in known if pair[1].hosts and fnmatchcase(pair[1].name, name)]
    if len(matches) != 1 or not matches[0][1].hosts:
        some = [pair for pair in matches or known if pair[1].hosts]
        names = ", ".join(sorted({cluster.name for _, cluster in some}))
        what = "matches several clusters" if len(matches) > 1 else "is not a cluster with readable hosts"
        raise InputError(f"'{name}' {what}.", fix=f"{'Name one of' if matches else 'There are'}: {names}.")
    estate, cluster = matches[0]
    return VmLocation(cluster.hosts, None, cluster.unread, estate.simulated)


def _needed(inventory: Path | None) -> Path:
    if inventory is None:
        raise InputError(
            "Neither a vCenter nor a snapshot was given.", fix="Use -i PATH, or --snapshot FILE."
        )
    return inventory
