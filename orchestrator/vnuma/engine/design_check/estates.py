"""Read an inventory's vCenters, each once; or one VM with every host that it may be powered on on."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from vnuma import __version__, assets
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import Estate, EstateVm, Unseen
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem, InputError, VmNotFound
from vnuma.estate import snapshot
from vnuma.vsphere import estate, read
from vnuma.vsphere.connect import Session, VmRef, connect
from vnuma.vsphere.counters import read_waits
from vnuma.vsphere.read import most_cores_per_socket
from vnuma.vsphere.tags import read_tags
from vnuma.vsphere.vcenter import VCenter
from vnuma.words.provenance import scenario_of

FULL_EVERY = timedelta(days=7)
"""After that long every VM is read in full again, whatever vCenter says of changes."""


def last_reading(vcenter: VCenter, now: datetime | None = None) -> Estate | None:
    """The newest reading by this account and this version; None where the next one has to be full.

    It is a snapshot beside the store. One that is lost, or cannot be read, costs a full reading only.
    """
    file = _file(vcenter)
    try:
        document = snapshot.read_json(file)
        if not isinstance(document, dict) or document.get("written_by") != __version__:
            return None
        (estate,) = snapshot.from_document(document, file)
        full_at = datetime.fromisoformat(estate.full_at)
    except (InputError, ValueError):
        return None
    age = (now or datetime.now(UTC)) - full_at
    return estate if timedelta() <= age < FULL_EVERY else None


def keep(vcenter: VCenter, estate: Estate) -> None:
    """Keep a reading for the next check. Raises InputError where it cannot be written."""
    file = _file(vcenter)
    new = file.with_suffix(f".{os.getpid()}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        snapshot.save([estate], new)
        new.replace(file)
    except OSError as error:
        raise InputError(
            f"The reading cannot be kept in {file.parent} ({error.strerror}).",
            fix="Name a folder that can be written: VNUMA_HOME=FOLDER",
        ) from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def _file(vcenter: VCenter) -> Path:
    """One file for each vCenter and account: another account may see other VMs."""
    whose = hashlib.sha256(vcenter.account.encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9.-]", "_", vcenter.host)[:60]
    return assets.home() / "readings" / f"{name}-{whose}.json"


def read_all(inventory: Inventory) -> list[Estate]:
    """Everything that the accounts of an Ansible inventory see.

    Raises InputError without a vCenter in it, EnvironmentProblem when the accounts see no VM at all: a
    pipeline would take a check of nothing for well.
    """
    return _with_vms([_read(target) for target in vcenters_of(inventory)])


def read_all_tagged(inventory: Inventory) -> list[Estate]:
    """The same with the VMs' tags. Where those cannot be read, `unseen` says why."""
    return _with_vms([_tagged(_read(target), target) for target in vcenters_of(inventory)])


def read_changes(inventory: Inventory, *, full: bool, tags: bool) -> list[Estate]:
    """Everything as `read_all`; unless `full`, only what changed since the newest reading is read.

    The reading is kept for the next one. Raises InputError where it cannot be.
    """
    found = [(_since_last(target, full=full), target) for target in vcenters_of(inventory)]
    return _with_vms([_tagged(one, target) if tags else one for one, target in found])


def read_some(inventory: Inventory, names: Iterable[str]) -> list[Estate]:
    """Some VMs, each with its host and cluster: by inventory name, else by name or path in any vCenter.

    Raises VmNotFound when no vCenter of the inventory has one of them, EnvironmentProblem for one that
    cannot be read.
    """
    targets = inventory.targets()
    return [found for name in names for found in _with_vms([_read_one(inventory, targets, name)], name)]


def read_target(target: Target) -> Estate:
    """An inventory's VM with its host and cluster. Raises VmNotFound."""
    return _read(target, lambda session: read.find_vm(session, target.vm))


def _read_one(inventory: Inventory, targets: dict[str, Target], name: str) -> Estate:
    if name in targets:
        return read_target(targets[name])
    missing: VmNotFound | None = None
    for target in _one_for_each(targets):
        try:
            return _read(target, lambda session: read.find_vm(session, name))
        except VmNotFound as error:
            missing = missing or error
    raise missing or _no_vcenter(inventory)


def save(inventory: Inventory, file: Path) -> list[Estate]:
    """Read everything and write it as a snapshot. Raises InputError rather than overwrite another file."""
    snapshot.refuse_other_file(file)
    found = read_all_tagged(inventory)
    snapshot.save(found, file)
    return found


def _since_last(target: Target, *, full: bool) -> Estate:
    server = vcenter(target)
    earlier = None if full else last_reading(server)
    found = _read(target, earlier=earlier)
    keep(server, found)
    return found


def _read(
    target: Target,
    find: Callable[[Session], VmRef | None] = lambda _session: None,
    earlier: Estate | None = None,
) -> Estate:
    """Everything that the account sees, or the VM that `find` names and what is around it."""
    with connect(vcenter(target)) as session:
        ref = find(session)
        found = estate.read_estate(session, ref, earlier)
        if ref is not None:
            limited = _with_limits(session, found)
            found = replace(limited, vms=tuple(_with_waits(session, ref, vm) for vm in limited.vms))
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


def _with_waits(session: Session, ref: VmRef, vm: EstateVm) -> EstateVm:
    """With how long its vCPUs waited, which is too much to read for every VM of an estate."""
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


def vcenters_of(inventory: Inventory) -> Iterable[Target]:
    """One target for each vCenter and account. Raises InputError where the inventory has none."""
    targets = inventory.targets()
    if not targets:
        raise _no_vcenter(inventory)
    return _one_for_each(targets)


def _one_for_each(targets: dict[str, Target]) -> Iterable[Target]:
    """One target for each vCenter and account."""
    return {
        (target.hypervisor.host, target.hypervisor.port, target.hypervisor.user): target
        for target in targets.values()
    }.values()


def _no_vcenter(inventory: Inventory) -> InputError:
    return InputError(f"{inventory} has no vCenter.", fix="vnuma init writes an inventory with one.")


def location_of_vm(name: str, file: Path | None, inventory: Inventory | None) -> VmLocation:
    """A VM, by name or inventory path, with its host's cluster: from a snapshot, or read from vCenter now.

    Raises VmNotFound, and InputError where its host could not be read.
    """
    estate, found = _in_snapshot(name, file) if file else _read_vm(name, _needed(inventory))
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


def _read_vm(name: str, inventory: Inventory) -> tuple[Estate, EstateVm]:
    (estate,) = read_some(inventory, [name])
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


def location_of_cluster(name: str, file: Path | None, inventory: Inventory | None) -> VmLocation:
    """The hosts of a cluster, by its name or by a pattern that only one matches.

    From a snapshot, or read from vCenter now. Raises InputError for an unknown one.
    """
    found: Iterable[Estate] = snapshot.load(file) if file else read_all(_needed(inventory))
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


def _needed(inventory: Inventory | None) -> Inventory:
    if inventory is None:
        raise InputError(
            "Neither a vCenter nor a snapshot was given.", fix="Use -i PATH, or --snapshot FILE."
        )
    return inventory
