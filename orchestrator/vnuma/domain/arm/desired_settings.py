"""The recipe: the settings that produce an arm on a given ESXi release.

Rules by release: vSphere Resource Management guides 6.0, 6.5 and 8.0 ("Virtual NUMA Controls"); Denneman,
"Decoupling of Cores per Socket from Virtual NUMA Topology in vSphere 6.5" (2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vnuma.domain.arm.arm import Arm, PhysicalCores, SetsVmSettings, declared
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.topology import unfit_node_size
from vnuma.domain.vm.change import as_written, settings_after
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import TYPED, VIRTUAL_NUMA, Settings, Since, Value, is_extra_config
from vnuma.errors import ArmImpossible


def affinity_settings(arm: Arm, vcpus: int, host: HostFacts) -> dict[str, Value]:
    """The CPUs that an arm pins the VM to. Raises ArmImpossible, also for unknown nodes of the others."""
    desired: dict[str, Value] = {}
    match arm.affinity:
        case "keep":
            pass
        case "none":
            desired["cpuAffinity"] = ()
        case "physical_cores":
            desired["cpuAffinity"] = physical_cores(host, vcpus)
        case PhysicalCores(physical_cores="fewest", spare=spare):
            desired["cpuAffinity"] = physical_cores(host, vcpus, spare=spare)
        case PhysicalCores(physical_cores=nodes, spare=spare):
            assert not isinstance(nodes, str)
            desired["cpuAffinity"] = physical_cores(host, vcpus, nodes=nodes, spare=spare)
        case cpus:
            refuse_impossible(cpus, vcpus, host)
            desired["cpuAffinity"] = tuple(sorted(set(cpus)))
    for field in ("numa_node_affinity", "memory_affinity"):
        if isinstance(nodes := getattr(arm, field), tuple):
            _refuse_unknown_nodes(nodes, host, field)
    return desired


def physical_cores(
    host: HostFacts, vcpus: int, *, nodes: Sequence[int] | None = None, spare: int = 0
) -> tuple[int, ...]:
    """One logical CPU per physical core for `vcpus` vCPUs, on as few host NUMA nodes as possible.

    If one node is enough, the lowest such is used alone; otherwise nodes are filled evenly, and so are given
    `nodes`. `spare` adds that many cores of the same nodes, or without `nodes` of others if necessary. Raises
    ArmImpossible for too few physical cores.
    """
    # The first logical CPU of each core (see HostFacts.core_of_cpu).
    cores = {node.id: tuple(sorted(node.cpus)[:: host.threads_per_core]) for node in host.numa_nodes}
    if nodes is None:
        chosen, more = _fewest_nodes(host, cores, vcpus), sorted(cores)
    else:
        _refuse_unknown_nodes(nodes, host, "affinity")
        chosen = more = sorted(set(nodes))
    taken = _evenly([cores[node] for node in chosen], vcpus)
    order = [*chosen, *(node for node in more if node not in chosen)]
    free = [cpu for node in order for cpu in cores[node] if cpu not in taken]
    if len(taken) < vcpus or len(free) < spare:
        where = " and ".join(f"NUMA node {node}" for node in chosen) if nodes else "the host"
        have = sum(len(cores[node]) for node in more)
        raise ArmImpossible(
            "T10",
            f"{where} of {host.name} has {have} physical cores, but {vcpus} vCPUs and {spare} spare "
            "need one core each.",
            fix="Name more NUMA nodes, use fewer vCPUs, or affinity: none.",
        )
    return tuple(sorted([*taken, *free[:spare]]))


def _fewest_nodes(host: HostFacts, cores: dict[int, tuple[int, ...]], vcpus: int) -> list[int]:
    """As few nodes as have that many cores: of equally few, the lowest numbered."""
    sizes = {node: len(cores[node]) for node in sorted(cores)}
    largest = sorted(sizes.values(), reverse=True)
    count = next((count for count in range(1, len(sizes) + 1) if sum(largest[:count]) >= vcpus), 0)
    if not count:
        raise ArmImpossible(
            "T10",
            f"{host.name} has {host.cores} physical cores, but {vcpus} vCPUs need one core each.",
            fix="Use fewer vCPUs, another host, or affinity: none.",
        )
    chosen: list[int] = []
    for node in sizes:
        rest = sorted((sizes[other] for other in sizes if other > node), reverse=True)
        best = sum(sizes[one] for one in [*chosen, node]) + sum(rest[: count - len(chosen) - 1])
        if len(chosen) < count and best >= vcpus:
            chosen.append(node)
    return chosen


def _evenly(nodes: list[tuple[int, ...]], vcpus: int) -> tuple[int, ...]:
    """Take CPUs from the nodes in turn, so that all are used evenly."""
    taken: list[int] = []
    for depth in range(max(map(len, nodes))):
        taken += [node[depth] for node in nodes if depth < len(node)][: vcpus - len(taken)]
    return tuple(sorted(taken))


def refuse_impossible(cpus: tuple[int, ...], vcpus: int, host: HostFacts) -> None:
    """Raise ArmImpossible for a CPU list that vSphere would refuse or that has no effect."""
    known = {cpu for node in host.numa_nodes for cpu in node.cpus}
    unknown = sorted(set(cpus) - known)
    if unknown:
        raise ArmImpossible(
            "A04",
            f"affinity names CPU {unknown[0]}, but {host.name} has logical CPUs 0 to {max(known)}.",
            fix="Correct the list, or use affinity: physical_cores.",
        )
    if len(set(cpus)) < vcpus:
        raise ArmImpossible(
            "A04",
            (
                f"affinity lists {len(set(cpus))} CPUs for {vcpus} vCPUs; vSphere requires at least one "
                "for each."
            ),
            fix="Add CPUs to the list, or use affinity: physical_cores.",
        )
    if set(cpus) == known:
        raise ArmImpossible(
            "A04",
            f"affinity lists every logical CPU of {host.name}, which vSphere treats as no affinity.",
            fix="Remove CPUs from the list, or use affinity: none.",
        )


def _refuse_unknown_nodes(nodes: Sequence[int], host: HostFacts, field: str) -> None:
    known = sorted(node.id for node in host.numa_nodes)
    unknown = sorted(set(nodes) - set(known))
    if unknown:
        has = "one NUMA node" if len(known) == 1 else f"the NUMA nodes {', '.join(map(str, known))}"
        raise ArmImpossible(
            "T17",
            f"{field} names NUMA node {unknown[0]}, but {host.name} has {has}.",
            fix="Correct the list." if len(known) > 1 else "Use a host with several NUMA nodes.",
        )


def node_count_settings(arm: Arm, vcpus: int, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """The settings for the stated number of vNUMA nodes; empty if the arm sizes nodes itself.

    Raises ArmImpossible if no setting of this release gives that number.
    """
    nodes = arm.vnuma_nodes
    if nodes is None or _sized_by_hand(arm):
        return {}
    if vcpus % nodes:
        raise ArmImpossible(
            "T08",
            f"arm {arm.label}: {vcpus} vCPUs cannot be spread evenly over {nodes} vNUMA nodes.",
            fix="Use a number that divides the vCPUs.",
        )
    desired = _hot_add(arm, nodes, vm, host)
    if esxi.has_virtual_numa(vm, host):
        desired |= _by_virtual_numa(arm, vcpus // nodes)
    elif host.release.key >= esxi.DECOUPLED_SINCE:
        desired |= _by_keys(arm, vcpus // nodes)
    else:
        desired |= _by_sockets(arm, vcpus, nodes)
    if nodes > 1 and vcpus < esxi.DEFAULT_MINIMUM_VCPUS and arm.numa_vcpu_min == "keep":
        desired[esxi.MINIMUM] = str(vcpus)
    return desired


def _sized_by_hand(arm: Arm) -> bool:
    """Whether the arm sets the node size by another field: vnuma_nodes is then only compared."""
    return (
        arm.max_per_virtual_node != "keep"
        or arm.cores_per_numa_node not in ("keep", "auto")
        or arm.follow_cores_per_socket != "auto"
    )


def _by_virtual_numa(arm: Arm, size: int) -> dict[str, Value]:
    """ESXi 8 with hardware 20: virtualNuma.coresPerNumaNode, which requires explicit cores per socket."""
    if arm.cores_per_socket is None:
        raise ArmImpossible(
            "T13",
            f"arm {arm.label}: a number of vNUMA nodes needs explicit cores per socket, or the VM "
            "would not power on.",
            fix="Write a topology such as 2x8.",
        )
    return {"coresPerNumaNode": size, esxi.FOLLOW: None, esxi.MAX_PER_NODE: None}


def _by_keys(arm: Arm, size: int) -> dict[str, Value]:
    """6.5 and later: a node per socket if that is the size, else a maximum that sockets do not affect."""
    if arm.cores_per_socket == size and size > 1:
        return {esxi.FOLLOW: "1", esxi.MAX_PER_NODE: None}
    return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: str(size)}


def _by_sockets(arm: Arm, vcpus: int, nodes: int) -> dict[str, Value]:
    """Up to 6.0, multi-core sockets are the nodes; a maximum works only with one core per socket."""
    size = vcpus // nodes
    if arm.cores_per_socket == 1:
        return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: str(size)}
    if arm.cores_per_socket == size:
        return {esxi.FOLLOW: None, esxi.MAX_PER_NODE: None}
    raise ArmImpossible(
        "T02",
        f"arm {arm.label}: up to ESXi 6.0, each socket with several cores is a vNUMA node, so "
        f"{arm.topology} cannot have {nodes}.",
        fix=f"Use topology {nodes}x{size} or {vcpus}x1.",
    )


def _hot_add(arm: Arm, nodes: int, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """CPU hot-add hides vNUMA, except on ESXi 8 with the VM's own setting."""
    on = vm.settings.get("cpuHotAddEnabled") is True if arm.cpu_hot_add == "keep" else arm.cpu_hot_add == "on"
    if not on or nodes == 1:
        return {}
    if esxi.has_virtual_numa(vm, host) and arm.expose_vnuma_on_hot_add != "off":
        return {"exposeVnumaOnCpuHotadd": True}
    rule = "T12" if esxi.has_virtual_numa(vm, host) else "T11"
    raise ArmImpossible(
        rule,
        f"arm {arm.label}: CPU hot-add shows the guest one vNUMA node, not {nodes}.",
        fix="Set cpu_hot_add: off.",
    )


_BEYOND = "P30"
"""Preflight's id for a reservation beyond the VM's or its host's size."""


def _memory_reservation(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    desired: dict[str, Value] = {}
    size = vm.settings["memoryMB"] if arm.memory_mb == "keep" else arm.memory_mb
    assert isinstance(size, int)
    match arm.memory_reservation:
        case "keep":
            kept = vm.settings.get("memoryReservation")
            locked = vm.settings.get("memoryReservationLockedToMax") is True
            reserved = size if locked else kept if isinstance(kept, int) else 0
        case "locked":
            reserved = size
            desired["memoryReservationLockedToMax"] = True
        case "none":
            reserved = 0
            desired |= {"memoryReservationLockedToMax": False, "memoryReservation": 0}
        case megabytes:
            reserved = megabytes
            desired |= {"memoryReservationLockedToMax": False, "memoryReservation": megabytes}
    if reserved > size:
        raise ArmImpossible(
            _BEYOND,
            f"arm {arm.label} reserves {reserved} MB, but {vm.name} has {size} MB.",
            fix="Lower memory_reservation.",
        )
    if 0 < host.memory_mb <= reserved:
        raise ArmImpossible(
            _BEYOND,
            f"arm {arm.label} reserves {reserved} MB, but {host.name} has {host.memory_mb} MB in all.",
            fix="Lower memory_reservation, or use a larger host.",
        )
    return desired


def _cpu_reservation(arm: Arm, vcpus: int, host: HostFacts) -> dict[str, Value]:
    match arm.cpu_reservation:
        case "keep":
            return {}
        case "none":
            return {"cpuReservation": 0}
        case "full":
            return {"cpuReservation": full_cpu_reservation(vcpus, host)}
        case megahertz:
            most = host.cores * host.mhz
            if host.mhz and megahertz > most:
                raise ArmImpossible(
                    "A09",
                    f"arm {arm.label} reserves {megahertz} MHz, but {host.name} has {most} MHz in all.",
                    fix="Lower cpu_reservation.",
                )
            return {"cpuReservation": megahertz}


def full_cpu_reservation(vcpus: int, host: HostFacts) -> int:
    """vCPUs times the host's clock, in MHz: what vSphere 8's resource guide asks of a low-latency VM.

    Raises ArmImpossible where the host has fewer cores, or does not tell its clock.
    """
    if not host.mhz:
        raise ArmImpossible(
            "A08",
            f"{host.name} does not report its clock speed, so a full CPU reservation is unknown.",
            fix="Write cpu_reservation in MHz.",
        )
    if vcpus > host.cores:
        raise ArmImpossible(
            "T10",
            f"{vcpus} vCPUs cannot be reserved in full on the {host.cores} cores of {host.name}.",
            fix="Use fewer vCPUs.",
        )
    return vcpus * host.mhz


def refuse_high_without_reservations(arm: Arm, vcpus: int, after: dict[str, Value], host: HostFacts) -> None:
    """High latency sensitivity gives every vCPU a core, and requires reserving all memory and CPU.

    Raises ArmImpossible.
    """
    if after.get("latencySensitivity") != "high":
        return
    memory = after.get("memoryReservationLockedToMax") is True or (
        after.get("memoryReservation") == after.get("memoryMB")
    )
    reserved = after.get("cpuReservation")
    cpu = isinstance(reserved, int) and reserved > 0 and reserved >= vcpus * host.mhz
    if memory and cpu:
        return
    missing = " and ".join(word for word, there in (("memory", memory), ("CPU", cpu)) if not there)
    raise ArmImpossible(
        "A08",
        f"arm {arm.label}: high latency sensitivity needs all memory and CPU reserved; {missing} is not.",
        fix="Set memory_reservation: locked and cpu_reservation: full, or latency_sensitivity: normal.",
    )


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
    desired |= _memory_reservation(arm, vm, host) | _cpu_reservation(arm, vcpus, host)
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
        upgrade = ", or upgrade the clone's compatibility with the VM off"
        raise ArmImpossible(
            "T18",
            f"{what} needs {since.words}; {vm.name} is vmx-{vm.hardware_version} "
            f"on ESXi {host.release.version}.",
            fix=f"Remove the field{upgrade if host.release.key >= since.release else ''}.",
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
    match arm.follow_cores_per_socket:
        case "on":
            desired[esxi.FOLLOW] = "1"
        case "off":
            desired[esxi.FOLLOW] = None
        case "auto":
            # Sockets must not be followed if the arm states a node size as well.
            sized = isinstance(arm.max_per_virtual_node, int) or isinstance(arm.cores_per_numa_node, int)
            decoupled = host.release.key >= esxi.DECOUPLED_SINCE
            desired[esxi.FOLLOW] = "1" if decoupled and arm.cores_per_socket and not sized else None
        case "keep":
            pass
    if arm.numa_autosize == "clear":
        desired |= {esxi.AUTOSIZE_COOKIE: None, esxi.AUTOSIZE_MAX: None}
    return desired


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
