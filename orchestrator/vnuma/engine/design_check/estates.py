"""Reading whole vCenters: those of an inventory, each once, however many VMs it is named for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from vnuma.domain.vm.estate import Estate, EstateVm, Unseen
from vnuma.domain.vm.provenance import scenario_of
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import read_targets
from vnuma.engine.access.target import Target
from vnuma.engine.design_check.last_reading import keep, last_reading
from vnuma.errors import EnvironmentProblem, InputError, VmNotFound
from vnuma.estate import snapshot
from vnuma.vsphere import estate, read
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.counters import read_waits
from vnuma.vsphere.host_options import most_cores_per_socket
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.tags import read_tags


def read_all(inventory: Path) -> list[Estate]:
    """Everything that the accounts of an Ansible inventory see.

    Raises InputError without a vCenter in it, EnvironmentProblem when the accounts see no VM at all: a
    pipeline would take a check of nothing for well.
    """
    return _with_vms([_read(target, lambda _session: None) for target in vcenters_of(inventory)])


def read_all_tagged(inventory: Path) -> list[Estate]:
    """The same with the VMs' tags. Where those cannot be read, `unseen` says why."""
    return _with_vms(
        [_tagged(_read(target, lambda _session: None), target) for target in vcenters_of(inventory)]
    )


def read_changes(inventory: Path, *, full: bool, tags: bool) -> list[Estate]:
    """Everything as `read_all`; unless `full`, only what changed since the newest reading is read.

    The reading is kept for the next one. Raises InputError where it cannot be.
    """
    found = [(_since_last(target, full=full), target) for target in vcenters_of(inventory)]
    return _with_vms([_tagged(one, target) if tags else one for one, target in found])


def read_some(inventory: Path, names: Iterable[str]) -> list[Estate]:
    """Some VMs, each with its host and cluster: by inventory name, else by name or path in any vCenter.

    Raises VmNotFound when no vCenter of the inventory has one of them, EnvironmentProblem for one that
    cannot be read.
    """
    targets = read_targets(inventory)
    return [found for name in names for found in _with_vms([_read_one(inventory, targets, name)], name)]


def read_target(target: Target) -> Estate:
    """An inventory's VM with its host and cluster. Raises VmNotFound."""
    return _read(target, lambda session: read.find_vm(session, target.vm))


def _read_one(inventory: Path, targets: dict[str, Target], name: str) -> Estate:
    if name in targets:
        return read_target(targets[name])
    missing: VmNotFound | None = None
    for target in _one_for_each(targets):
        try:
            return _read(target, lambda session: read.find_vm(session, name))
        except VmNotFound as error:
            missing = missing or error
    raise missing or _no_vcenter(inventory)


def save(inventory: Path, file: Path) -> list[Estate]:
    """Read everything and write it as a snapshot."""
    found = read_all_tagged(inventory)
    snapshot.save(found, file)
    return found


def _since_last(target: Target, *, full: bool) -> Estate:
    server = vcenter(target)
    earlier = None if full else last_reading(server)
    found = _read(target, lambda _session: None, earlier)
    keep(server, found)
    return found


def _read(target: Target, find: Callable[[Session], VmRef | None], earlier: Estate | None = None) -> Estate:
    with connect(vcenter(target)) as session:
        ref = find(session)
        found = estate.read_estate(session, ref, earlier)
        if ref is not None:
            found = _with_waits(session, ref, _with_limits(session, found))
        return replace(found, simulated=scenario_of(session.about.name))


def _with_limits(session: Session, found: Estate) -> Estate:
    """With what its VMs' hosts allow, which is too much to read for every host of an estate."""
    most = {one.facts.host_moid: most_cores_per_socket(session, one.facts) for one in found.vms}
    clusters = tuple(
        replace(
            cluster,
            hosts=tuple(replace(host, max_cores_per_socket=most.get(host.moid)) for host in cluster.hosts),
        )
        for cluster in found.clusters
    )
    return replace(found, clusters=clusters)


def _with_waits(session: Session, ref: VmRef, found: Estate) -> Estate:
    """With how long the VM's vCPUs waited, which is too much to read for every VM of an estate."""
    return replace(found, vms=tuple(_waited(session, ref, vm) for vm in found.vms))


def _waited(session: Session, ref: VmRef, vm: EstateVm) -> EstateVm:
    vcpus = vm.facts.settings.get("numCPUs")
    if vm.facts.power is not Power.ON or not isinstance(vcpus, int):
        return replace(vm, absent={**vm.absent, "waits": "the VM does not run"})
    waits = read_waits(session, ref, vcpus)
    if isinstance(waits, str):
        return replace(vm, absent={**vm.absent, "waits": waits})
    return replace(vm, waits=waits)


def _tagged(found: Estate, target: Target) -> Estate:
    try:
        tags = read_tags(vcenter(target))
    except EnvironmentProblem as error:
        return replace(found, unseen=(*found.unseen, Unseen("tags", found.source, error.what)))
    vms = tuple(replace(vm, tags=tags.get(vm.facts.moid, ())) for vm in found.vms)
    return replace(found, vms=vms)


def _with_vms(estates: list[Estate], name: str = "") -> list[Estate]:
    """The estates, unless there is nothing to check in them."""
    if not any(estate.vms for estate in estates):
        why = next((item.why for estate in estates for item in estate.unseen if item.kind == "vm"), "")
        where = ", ".join(estate.source for estate in estates)
        reason = why or ("it is a template" if name else "the account may see only templates")
        raise EnvironmentProblem(
            f"No VM to check in {where}{f' named {name}' if name else ''}: {reason}.",
            fix="vnuma doctor checks the account's rights; docs/reference/vcenter-role.md lists them.",
        )
    return estates


def vcenters_of(inventory: Path) -> Iterable[Target]:
    """One target for each vCenter and account. Raises InputError where the inventory has none."""
    targets = read_targets(inventory)
    if not targets:
        raise _no_vcenter(inventory)
    return _one_for_each(targets)


def _one_for_each(targets: dict[str, Target]) -> Iterable[Target]:
    """One target for each vCenter and account."""
    return {
        (target.vcenter.host, target.vcenter.port, target.vcenter.user): target for target in targets.values()
    }.values()


def _no_vcenter(inventory: Path) -> InputError:
    return InputError(f"{inventory} has no vCenter.", fix="vnuma init writes an inventory with one.")
