"""The recipe: the settings that produce an arm on a given ESXi release.

Rules by release: vSphere Resource Management guides 6.0, 6.5 and 8.0 ("Virtual NUMA Controls"); Denneman,
"Decoupling of Cores per Socket from Virtual NUMA Topology in vSphere 6.5" (2016).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vnuma.domain.arm.affinity import affinity_settings
from vnuma.domain.arm.arm import Arm, SetsVmSettings, declared
from vnuma.domain.arm.node_count import node_count_settings
from vnuma.domain.arm.reservation import refuse_high_without_reservations, reservation_settings
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.topology import unfit_node_size
from vnuma.domain.vm.change import as_written, settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import TYPED, VIRTUAL_NUMA, Settings, Since, Value, is_extra_config
from vnuma.errors import ArmImpossible


def desired_settings(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """What to set on this VM for this arm, without settings that the arm keeps.

    Raises ArmImpossible when this host or VM cannot provide what the arm asks for.
    """
    if arm.topology == "keep":
        raise ArmImpossible(
            "T00",
            f"arm {arm.label} has topology: keep, which is only for targets without a vCenter; {vm.name} is "
            "a VM in vCenter.",
            fix="Give its topology, as in 2x8.",
        )
    if vm.hardware_version < esxi.MINIMUM_HARDWARE:
        raise ArmImpossible(
            "T18",
            f"{vm.name} has hardware version {vm.hardware_version}; vNUMA needs "
            f"{esxi.MINIMUM_HARDWARE} or later.",
            fix="Upgrade the clone's compatibility in the vSphere Client, with the VM off.",
        )
    vcpus = vcpus_of(arm, vm)
    if vcpus > host.cores:
        raise ArmImpossible(
            "T10",
            f"{vcpus} vCPUs are more than the {host.cores} physical cores of {host.name}.",
            fix="Use fewer.",
        )
    if arm.cores_per_socket is None:
        _refuse_older("topology: auto", VIRTUAL_NUMA, vm, host)
    desired: dict[str, Value] = {"numCPUs": vcpus, "numCoresPerSocket": arm.cores_per_socket or 0}
    desired |= _plain_settings(arm, vm, host)
    desired |= reservation_settings(arm, vcpus, vm, host)
    refuse_high_without_reservations(arm, vcpus, {**vm.settings, **desired}, host)
    desired |= affinity_settings(arm, vcpus, host)
    desired |= _layout_keys(arm, host)
    desired |= node_count_settings(arm, vcpus, vm, host)
    desired |= {key: None if value == "auto" else value for key, value in arm.numa.items()}
    _refuse_incompatible_nodes(arm, vm, settings_after(vm.settings, desired))
    return _spelled(desired, vm.settings)


def vcpus_of(arm: Arm, vm: VmFacts) -> int:
    """The number of vCPUs in this arm: its own, else the VM's."""
    own = vm.settings["numCPUs"]
    assert isinstance(own, int)
    return arm.vcpu_count or own


def _plain_settings(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """The fields whose value is that of their setting. Raises ArmImpossible for one that the VM lacks."""
    desired: dict[str, Value] = {}
    for field, item in declared().items():
        value = getattr(arm, field)
        if not isinstance(item, SetsVmSettings) or item.computed or value == "keep":
            continue
        if value != "auto":
            _refuse_older(field, item.since, vm, host)
        if esxi.has(item.since, vm, host):
            (name,) = item.settings
            desired[name] = _as_setting(name, value)
    return desired


def _refuse_older(what: str, since: Since | None, vm: VmFacts, host: HostFacts) -> None:
    if since and not esxi.has(since, vm, host):
        raise ArmImpossible(
            "T18",
            f"{what} needs {since.words}; {vm.name} is vmx-{vm.hardware_version} "
            f"on ESXi {host.release.version}.",
            fix="Remove the field, or upgrade the clone's compatibility with the VM off.",
        )


def _as_setting(name: str, value: int | str | tuple[int, ...]) -> Value:
    """A field's value as its setting's: extraConfig is text, and None removes a key."""
    typed = TYPED.get(name)
    if value in ("auto", "none"):
        return typed.unset if typed else None
    if value in ("on", "off"):
        return value == "on" if typed else str(value == "on").upper()
    if isinstance(value, tuple):
        numbers = tuple(sorted(set(value)))
        return numbers if typed else ",".join(map(str, numbers))
    return value if typed else str(value)


def _layout_keys(arm: Arm, host: HostFacts) -> dict[str, Value]:
    desired: dict[str, Value] = {}
    decoupled = host.release.key >= esxi.DECOUPLED_SINCE
    match arm.follow_cores_per_socket:
        case "on":
            desired[esxi.FOLLOW] = "1"
        case "off":
            desired[esxi.FOLLOW] = None
        case "auto":
            desired[esxi.FOLLOW] = "1" if decoupled and arm.cores_per_socket and not _sized(arm) else None
        case "keep":
            pass
    if arm.numa_autosize == "clear":
        desired |= {esxi.AUTOSIZE_COOKIE: None, esxi.AUTOSIZE_MAX: None}
    return desired


def _sized(arm: Arm) -> bool:
    """Whether the arm states a node size: sockets must then not be followed as well."""
    return isinstance(arm.max_per_virtual_node, int) or isinstance(arm.cores_per_numa_node, int)


def _refuse_incompatible_nodes(arm: Arm, vm: VmFacts, after: Settings) -> None:
    """A manual node size must fit vCPUs and sockets, or the VM does not power on (rule T13)."""
    size, vcpus, per_socket = (
        after.get(name) for name in ("coresPerNumaNode", "numCPUs", "numCoresPerSocket")
    )
    if not isinstance(size, int) or not size or after.get("autoCoresPerNumaNode") is True:
        return
    assert isinstance(vcpus, int)
    kept = "" if arm.cores_per_numa_node != "keep" else f" (kept from {vm.name})"
    what = f"arm {arm.label}: {size} cores per NUMA node{kept}"
    fix = "Choose a number that fits, or cores_per_numa_node: auto."
    stated = isinstance(per_socket, int) and per_socket and after.get("autoCoresPerSocket") is not True
    if why := unfit_node_size(vcpus, int(str(per_socket)) if stated else None, size):
        raise ArmImpossible("T13", f"{what} {why}: the VM would not power on.", fix=fix)


def _spelled(desired: dict[str, Value], current: Settings) -> dict[str, Value]:
    """extraConfig keys in this VM's spelling, since ESXi ignores their case."""
    own = {name.lower(): name for name in current if is_extra_config(name)}
    return {own.get(name.lower(), name) if is_extra_config(name) else name: v for name, v in desired.items()}


_WRITTEN_BY_ESXI = frozenset({esxi.AUTOSIZE_COOKIE, esxi.AUTOSIZE_MAX})
"""Rewritten at every power-on, so the VM's values are not anybody's choice."""

_LOCKED, _RESERVED = "memoryReservationLockedToMax", "memoryReservation"


def own_values(arms: Iterable[Arm], baseline: Settings, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """Every setting that some arm of a study sets, with its value in the VM's baseline.

    Applying these first and an arm's settings over them gives the arm the same shape whichever arm was
    measured before. Impossible arms set nothing.
    """
    own = replace(vm, settings=baseline)
    names: set[str] = set()
    for arm in arms:
        try:
            names |= desired_settings(arm, own, host).keys()
        except ArmImpossible:
            continue
    if _LOCKED in names:  # vSphere then sets the reservation too
        names.add(_RESERVED)
    return {name: as_written(baseline, name) for name in names - _WRITTEN_BY_ESXI}


def merge_over_own(own: Settings, desired: Settings) -> dict[str, Value]:
    """An arm's settings over the VM's own. vSphere itself sets a reservation that is locked to the memory."""
    both = {**own, **desired}
    if both.get(_LOCKED) is True and _RESERVED not in desired:
        both.pop(_RESERVED, None)
    return both
