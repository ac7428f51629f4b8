"""Topology rules on what an ESXi release does with the VM's settings."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from vnuma.checks.facts import EXTRA_CONFIG, Facts
from vnuma.checks.rule import Applies, Fail, Fix, Severity, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import (
    NO_HOT_ADD,
    NO_NODE_SIZE,
    even_nodes,
    fits_memory,
    follows_cores_per_socket,
    node_per_socket,
    node_size_is_set,
    nodes_for_all,
    nodes_for_memory,
    nodes_needed,
    nodes_of,
    poor_nodes,
    shape_of,
    split_over,
    unmatched_sockets,
    without_stored,
)
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.topology import unfit_node_size
from vnuma.domain.vm.server import PROCESSOR_GROUP
from vnuma.domain.vm.setting import Settings

COUPLED = Applies(since=esxi.VNUMA_SINCE, until=(6, 0), hardware_since=esxi.MINIMUM_HARDWARE)
DECOUPLED_RELEASES = Applies(since=esxi.DECOUPLED_SINCE)


@rule(
    "T02",
    Severity.INFO,
    "Sockets are vNUMA nodes on this release",
    condition="ESXi 5.0 to 6.0, more than 8 vCPUs, cores per socket above 1, nothing forces one node",
    consequence="Cores per socket set the size of a vNUMA node: the guest gets one node per socket. If the "
    "VM fits one host NUMA node, sources disagree: it may get only one.",
    fix="Expect vCPUs divided by cores per socket as the number of nodes.",
    sources=(sources.VNUMA_6,),
    reads="vm host",
    applies=COUPLED,
    related=("T03", "T15"),
)
def t02(facts: Facts) -> Fail | None:
    if facts.vcpus < esxi.DEFAULT_MINIMUM_VCPUS or facts.per_socket == 1:
        return None
    if facts.sockets > 1 and facts.prediction.acceptable == (1,):
        return None
    return Fail(
        {
            "vCPUs": str(facts.vcpus),
            "cores per socket": str(facts.per_socket),
            "predicted nodes": nodes_of(facts.doubted_prediction),
        }
    )


@rule(
    "T03",
    Severity.INFO,
    "One core per socket does not mean a node per vCPU",
    condition="ESXi 5.0 to 6.0, more than 8 vCPUs, cores per socket 1",
    consequence="vNUMA nodes match the host of the first power-on, not the number of vCPUs: 16x1 does not "
    "have 16 nodes.",
    fix="Label such an arm by the nodes observed; numa.vcpu.maxPerVirtualNode = 1 gives one node per vCPU.",
    sources=(sources.VNUMA_6, sources.ATTRIBUTES_6),
    reads="vm host",
    applies=COUPLED,
    in_study=Severity.WARN,
    related=("T02", "T15"),
)
def t03(facts: Facts) -> Fail | None:
    if facts.vcpus < esxi.DEFAULT_MINIMUM_VCPUS or facts.per_socket != 1 or node_size_is_set(facts):
        return None
    return Fail(
        {"shape": f"{facts.vcpus}x1", "predicted nodes": nodes_of(facts.doubted_prediction)},
        Fix(
            "Read the nodes that the guest shows. For one node per vCPU: numa.vcpu.maxPerVirtualNode = 1.",
            arm={"max_per_virtual_node": 1},
            settings={"numa.vcpu.maxPerVirtualNode": "1"},
        ),
    )


@rule(
    "T04",
    Severity.INFO,
    "Cores per socket do not change vNUMA here",
    condition="ESXi 6.5 or later; several sockets with several cores, or arms of different shapes; cores per "
    "socket not followed (numa.vcpu.followcorespersocket, Numa.FollowCoresPerSocket); no node size "
    "set. A warning under study on ESXi 8 with hardware version 20, where sources disagree",
    consequence="Cores per socket have no effect on vNUMA: the guest's NUMA nodes come from the host. A "
    "sweep over cores per socket compares identical topologies.",
    fix="Set cores per socket to the vCPUs of a vNUMA node, so that sockets match nodes. For a study that "
    "shapes nodes: numa.vcpu.followcorespersocket = 1 on the VM, Numa.FollowCoresPerSocket = 1 on the host, "
    "or on ESXi 8 virtualNuma.coresPerNumaNode.",
    sources=(sources.DECOUPLED, sources.VNUMA_65, sources.RIGHT_SIZING),
    reads="vm host",
    applies=DECOUPLED_RELEASES,
    in_study=Severity.BLOCK,
    yields_to={
        "T11": "While CPU hot-add hides vNUMA, following cores per socket changes nothing: fix T11 first.",
        "T12": (
            "While CPU hot-add forces one node, following cores per socket changes nothing: fix T12 first."
        ),
    },
    related=("T11", "T14", "S06"),
)
def t04(facts: Facts) -> Fail | None:
    if facts.subject.study:
        return _null_sweep(facts)
    cosmetic = facts.per_socket > 1 and facts.sockets > 1 and facts.vcpus >= esxi.DEFAULT_MINIMUM_VCPUS
    if not cosmetic or node_size_is_set(facts):
        return None
    # What hot-add hides comes back with T11's or T12's fix: sockets have to match those nodes.
    seen = facts.prediction
    if facts.vm.settings.get("cpuHotAddEnabled") is True:
        without = {**facts.vm.settings, "cpuHotAddEnabled": False}
        seen = predict(facts.usual_host, without, facts.hardware)
    nodes = seen.vnuma_nodes
    if nodes == facts.sockets:
        return None
    return Fail(
        {
            "sockets": str(facts.sockets),
            "predicted nodes": nodes_of(facts.doubted_prediction),
            esxi.FOLLOW: "not set",
        },
        _socket_per_node(facts, nodes),
    )


def _socket_per_node(facts: Facts, nodes: int) -> Fix | None:
    """As many sockets as nodes; None for uneven nodes, or if memory needs more."""
    if facts.vcpus % nodes or (nodes == 1 and not fits_memory(facts)):
        return None
    size = facts.vcpus // nodes
    return Fix(
        f"Set {size} cores per socket: one socket for each vNUMA node.",
        arm={"topology": f"{nodes}x{size}"},
        settings={"numCoresPerSocket": size},
    )


def _null_sweep(facts: Facts) -> Fail | None:
    """A study whose arms differ in shape but not in predicted nodes."""
    host, study = facts.usual_host, facts.study
    shapes = {settings.get("numCoresPerSocket") for settings in study.arms.values()}
    found = [predict(host, settings, facts.hardware) for settings in study.arms.values()]
    seen = {one.node_sizes for one in found}
    if len(shapes) < 2 or len(seen) > 1 or follows_cores_per_socket(facts):
        return None
    meant = any(study.study.arm(label).follow_cores_per_socket == "off" for label in study.arms)
    return Fail(
        {
            "arms": ", ".join(study.arms),
            "predicted nodes in each": str(len(next(iter(seen)))),
            esxi.HOST_FOLLOW: "not read" if facts.host.advanced is None else "0",
        },
        Fix(
            "Let cores per socket shape the nodes: follow_cores_per_socket: on (set while powered off; no "
            "host reboot).",
            arm={"follow_cores_per_socket": "on"},
            settings={esxi.FOLLOW: "1"},
        ),
        # Not for a study that sets `off`, to compare cosmetic shapes, nor where an unread host option may be
        # on or sources disagree, so that only a measurement decides.
        severity=Severity.WARN
        if meant or facts.host.advanced is None or any(one.alternatives for one in found)
        else None,
    )


@rule(
    "T14",
    Severity.INFO,
    "Stored topology of the first power-on",
    condition="numa.autosize.once is on and numa.autosize off (the defaults), and the stored keys "
    "numa.autosize.cookie and numa.autosize.vcpu.maxPerVirtualNode give different nodes than a fresh "
    "sizing; for a VM under study, any stored key that an arm keeps",
    consequence="ESXi keeps the layout of the first power-on until the number of vCPUs changes: a new "
    "number of cores per socket, or another host, has no effect.",
    fix="Remove both stored keys with the VM off; restore them later (arms do this: numa_autosize: clear).",
    sources=(sources.VNUMA_65, sources.MISMATCH),
    reads="vm host",
    applies=DECOUPLED_RELEASES,
    in_study=Severity.BLOCK,
    yields_to={
        "T11": "While CPU hot-add hides vNUMA, the stored layout has no effect: fix T11 first.",
        "T04": (
            "Unless cores per socket are followed, clearing the key gives the same nodes again: fix T04 "
            "first."
        ),
    },
    related=("T04", "S06"),
)
def t14(facts: Facts) -> Fail | None:
    stored = {name: facts.key(name) for name in (esxi.AUTOSIZE_COOKIE, esxi.AUTOSIZE_MAX)}
    once = facts.key("numa.autosize.once")
    if not any(stored.values()) or (once is not None and not facts.key_on("numa.autosize.once")):
        return None
    if facts.key_on("numa.autosize"):  # sized at every power-on
        return None
    nodes = predict(facts.usual_host, without_stored(facts.vm.settings), facts.hardware)
    if nodes.node_sizes == facts.prediction.node_sizes and not facts.studied:
        return None
    return Fail(
        {
            **{name: value or "not set" for name, value in stored.items()},
            "predicted nodes": f"{nodes_of(facts.doubted_prediction)}, sized anew {nodes_of(nodes)}",
            "nodes needed": str(nodes_needed(facts)),
        },
        Fix(
            "Remove both stored keys with the VM off (arms do this: numa_autosize: clear).",
            arm={"numa_autosize": "clear"},
            settings={esxi.AUTOSIZE_COOKIE: None, esxi.AUTOSIZE_MAX: None},
        ),
    )


@rule(
    "T15",
    Severity.WARN,
    "Two settings ask for different node sizes",
    condition="numa.vcpu.maxPerVirtualNode and cores per socket above 1 are both set, ESXi 5.0 to 6.0",
    consequence="The documentation says to use only one of them; it does not say which one wins.",
    fix="Keep one: remove numa.vcpu.maxPerVirtualNode, or set cores per socket to 1.",
    sources=(sources.ATTRIBUTES_6,),
    reads="vm host",
    applies=COUPLED,
)
def t15(facts: Facts) -> Fail | None:
    largest = facts.key("numa.vcpu.maxPerVirtualNode")
    if largest is None or facts.per_socket == 1:
        return None
    return Fail(
        {"numa.vcpu.maxPerVirtualNode": largest, "cores per socket": str(facts.per_socket)}, NO_NODE_SIZE
    )


@rule(
    "T25",
    Severity.WARN,
    "A set node size makes more nodes than the VM needs",
    condition="numa.vcpu.maxPerVirtualNode, cores per NUMA node or cores per socket that are followed give "
    "more nodes than vCPUs (at most 64 in each) and memory need here, evenly where the host's nodes allow "
    "it. Without that key a note if they have at least 4 vCPUs and lie evenly on the host's",
    consequence="Smaller nodes: less memory is local, MAXDOP within a node is lower, and the size stays "
    "when the VM gets more vCPUs or another host. ESXi 6.5 and later choose it by themselves.",
    fix="Remove the node size with the VM off, unless it was measured to be better.",
    sources=(sources.ADVANCED_65, sources.RIGHT_SIZING),
    reads="vm host",
    applies=Applies(since=esxi.VNUMA_SINCE),
    in_study=Severity.INFO,
    yields_to={"T15": "Two settings give the size: see T15 first."},
    related=("T15", "T08"),
)
def t25(facts: Facts) -> Fail | None:
    size = facts.key_number(esxi.MAX_PER_NODE)
    if size is None and not _shaped(facts):
        return None
    fewest = max(even_nodes(facts) or nodes_needed(facts), nodes_for_memory(facts))
    needed = max(fewest, ceil(facts.vcpus / PROCESSOR_GROUP))
    seen = facts.prediction
    if seen.vnuma_nodes <= needed:
        return None
    every = len(facts.host.numa_nodes)
    poor = poor_nodes(seen.vnuma_nodes, min(seen.node_sizes), nodes_for_all(facts), every)
    sizes = {esxi.MAX_PER_NODE: str(size)} if size else {"vCPUs of a node": str(seen.node_sizes[0])}
    return Fail(
        {
            **shape_of(facts),
            **sizes,
            "predicted nodes": nodes_of(facts.doubted_prediction),
            "nodes needed": str(needed),
        },
        NO_NODE_SIZE if size else _resized(facts, needed),
        severity=None if (size or poor) else Severity.INFO,
    )


def _resized(facts: Facts, nodes: int) -> Fix:
    """As many vNUMA nodes, each a socket, if they can be equal."""
    return split_over(facts, nodes) if facts.vcpus % nodes else node_per_socket(facts, nodes)


def _shaped(facts: Facts) -> bool:
    """Whether cores per NUMA node, or cores per socket, set the size of the nodes."""
    coupled = facts.release < esxi.DECOUPLED_SINCE and facts.per_socket > 1
    return coupled or facts.manual_node_size or follows_cores_per_socket(facts)


@rule(
    "T26",
    Severity.INFO,
    "Sockets do not match the vNUMA nodes",
    condition="not as many sockets as predicted vNUMA nodes, and a socket for each vCPU, or fewer sockets "
    "than the host nodes that vCPUs and memory need; automatic cores per socket pass",
    consequence="Windows and SQL Server see sockets, and caches within them, that are not where the nodes "
    "are. An edition with a limit of sockets may leave CPUs unused.",
    fix="Use a socket for each vNUMA node: vCPUs divided by the nodes as cores per socket.",
    sources=(sources.DECOUPLED, sources.RIGHT_SIZING),
    reads="vm host",
    related=("T04", "T05", "S01"),
)
def t26(facts: Facts) -> Fail | None:
    if facts.studied or facts.vcpus == 1 or facts.number("numCoresPerSocket") == 0:
        return None
    if facts.vm.settings.get("autoCoresPerSocket") is True:
        return None
    needed = nodes_for_all(facts)
    if not unmatched_sockets(facts.sockets, facts.vcpus, 0, needed):
        return None  # whatever the number of nodes
    nodes = facts.prediction.vnuma_nodes
    if nodes == facts.sockets:
        return None
    return Fail(
        {"sockets": str(facts.sockets), "predicted nodes": nodes_of(facts.doubted_prediction)},
        split_over(facts, max(nodes, needed)),
    )


@rule(
    "T27",
    Severity.WARN,
    "The guest sees fewer nodes than the vCPUs need",
    condition="fewer vNUMA nodes are predicted than the host NUMA nodes that hold the vCPUs",
    consequence="ESXi spreads the VM over host nodes that the guest does not see: its memory is partly "
    "remote, and SQL Server cannot know which.",
    fix="Use a socket for each host node needed, and remove a larger node size.",
    sources=(sources.VNUMA_65, sources.RIGHT_SIZING),
    reads="vm host",
    applies=Applies(since=esxi.VNUMA_SINCE),
    yields_to={
        "T06": "With so few vCPUs there is no vNUMA: see T06 first.",
        "T10": "The VM has more vCPUs than the host has cores: see T10 first.",
        "T11": "CPU hot-add hides the nodes: fix T11 first.",
        "T12": "CPU hot-add hides the nodes: fix T12 first.",
        "T18": "The hardware version has no vNUMA: see T18 first.",
    },
    related=("T05", "T09", "T26"),
)
def t27(facts: Facts) -> Fail | None:
    needed = min(nodes_needed(facts), len(facts.host.numa_nodes))
    if needed == 1 or facts.prediction.vnuma_nodes >= needed:
        return None
    return Fail(
        {
            **shape_of(facts),
            "predicted nodes": nodes_of(facts.doubted_prediction),
            "nodes needed": str(needed),
        },
        _resized(facts, needed),
    )


@rule(
    "T11",
    Severity.BLOCK,
    "CPU hot-add hides NUMA from the guest",
    condition="CPU hot-add is on, ESXi 6.5 to 7.0; a note if the VM would have one node anyway",
    consequence="CPU hot-add turns vNUMA off: Windows and SQL Server see one flat node, and do not know "
    "that part of the memory is remote. Windows may also show empty nodes.",
    fix="Power the VM off and turn CPU hot-add off. If it must stay on, cpuid.maxVCPUs of at most 64 "
    "avoids the empty nodes.",
    sources=(sources.HOT_ADD_KB,),
    reads="vm host",
    applies=Applies(since=esxi.DECOUPLED_SINCE, until=(7, 0)),
    related=("T04", "T05", "S17", "W01"),
)
def t11(facts: Facts) -> Fail | None:
    return _hot_add(facts) if facts.on("cpuHotAddEnabled") else None


@rule(
    "T12",
    Severity.WARN,
    "CPU hot-add forces one vNUMA node",
    condition="CPU hot-add is on, ESXi 8 or later, exposeVnumaOnCpuHotadd is off; a note if the VM would "
    "have one node anyway",
    consequence="The guest gets a single vNUMA node, whatever its size.",
    fix="Set virtualNuma.exposeVnumaOnCpuHotadd (hardware version 20; hot-add must be on), or turn hot-add "
    "off.",
    sources=(sources.HOT_ADD_8, sources.VIRTUAL_NUMA_API),
    reads="vm host",
    applies=Applies(since=esxi.VIRTUAL_NUMA_SINCE),
    related=("T11", "T18"),
)
def t12(facts: Facts) -> Fail | None:
    if not facts.on("cpuHotAddEnabled") or facts.on("exposeVnumaOnCpuHotadd"):
        return None
    return _hot_add(facts)


def _hot_add(facts: Facts) -> Fail:
    """What hot-add hides: informational for a VM that would have one node anyway."""
    facts.require_whole_sockets()
    without = {**facts.vm.settings, "cpuHotAddEnabled": False}
    nodes = predict(host_shape(facts.host), without, facts.hardware).vnuma_nodes
    fix = NO_HOT_ADD
    if facts.has_virtual_numa:
        fix = Fix(
            "Turn CPU hot-add off with the VM off, or set exposeVnumaOnCpuHotadd.",
            arm=NO_HOT_ADD.arm,
            settings=NO_HOT_ADD.settings,
        )
    return Fail(
        {
            "cpuHotAddEnabled": "true",
            "ESXi": facts.host.release.version,
            "vCPUs / cores a node": f"{facts.vcpus} / {facts.cores_per_node}",
            "predicted nodes": f"1, without hot-add {nodes}",
        },
        fix,
        severity=None if nodes > 1 else Severity.INFO,
        matters=" ".join(_of_hot_add(facts, nodes)),
    )


def _of_hot_add(facts: Facts, nodes: int) -> Iterator[str]:
    """Confidence and consequences."""
    if nodes == 1:
        yield "The VM would have one node anyway; this matters only when it grows."
    if EXTRA_CONFIG in facts.subject.absent and not facts.assumes(EXTRA_CONFIG):
        yield "Its numa.* keys were not seen: without hot-add they may give another number of nodes."


@rule(
    "T13",
    Severity.BLOCK,
    "The manual vNUMA size cannot work",
    condition="coresPerNumaNode is set, and one of these holds: it does not divide numCPUs; it is neither a "
    "multiple nor a divisor of cores per socket; cores per socket are automatic; the hardware version "
    "is below 20",
    consequence="The VM fails to power on, or vSphere refuses the setting.",
    fix="Choose cores per NUMA node that divide the vCPUs and match the cores per socket.",
    sources=(sources.VM_OPERATOR,),
    reads="vm host",
    applies=Applies(since=esxi.VIRTUAL_NUMA_SINCE),
    related=("T18",),
)
def t13(facts: Facts) -> Fail | None:
    size = facts.number("coresPerNumaNode")
    if not size or facts.on("autoCoresPerNumaNode"):
        return None
    wrong = _manual_problem(facts, size)
    if not wrong:
        return None
    nodes = max(1, round(facts.vcpus / size))
    even = facts.vcpus // nodes if facts.vcpus % nodes == 0 else facts.vcpus
    return Fail(
        {
            "vCPUs": str(facts.vcpus),
            "cores per socket": "automatic" if facts.on("autoCoresPerSocket") else str(facts.per_socket),
            "cores per NUMA node": str(size),
            "hardware version": f"vmx-{facts.hardware}",
            "problem": wrong,
        },
        _node_size(facts, even),
    )


def _node_size(facts: Facts, size: int) -> Fix:
    """Sockets and nodes of that size; older hardware must be upgraded first, which no setting does."""
    text = f"Set {size} cores per socket and {size} cores per NUMA node, on hardware version 20 or later."
    if facts.hardware < esxi.VIRTUAL_NUMA_HARDWARE:
        return Fix(text)
    return Fix(
        text,
        arm={"topology": f"{facts.vcpus // size}x{size}", "cores_per_numa_node": size},
        settings={"numCoresPerSocket": size, "coresPerNumaNode": size},
    )


def _manual_problem(facts: Facts, size: int) -> str:
    if facts.hardware < esxi.VIRTUAL_NUMA_HARDWARE:
        return "the hardware version has no virtualNuma"
    per_socket = None if facts.on("autoCoresPerSocket") else facts.per_socket
    why = unfit_node_size(facts.vcpus, per_socket, size)
    return f"{size} cores per NUMA node {why}" if why else ""


@rule(
    "T18",
    Severity.BLOCK,
    "The hardware version lacks a feature",
    condition="hardware version below 8 (no vNUMA; a note for up to 8 vCPUs outside a study), or below 20 "
    "with virtualNuma set (no manual node size)",
    consequence="The feature does not exist: the setting is refused or has no effect.",
    fix="Upgrade the VM's compatibility, or plan without the feature.",
    sources=(sources.VNUMA_6, sources.VM_OPERATOR, sources.ADVANCED_65),
    reads="vm",
    related=("T12", "T13"),
)
def t18(facts: Facts) -> Fail | None:
    version, settings = facts.hardware, facts.vm.settings
    wanted = (
        (8, "vNUMA", True),
        (20, "virtualNuma.coresPerNumaNode", _has_node_size(settings)),
        (20, "virtualNuma.exposeVnumaOnCpuHotadd", settings.get("exposeVnumaOnCpuHotadd") is True),
    )
    for needed, feature, asked in wanted:
        if asked and version < needed:
            return Fail(
                {"hardware version": f"vmx-{version}", feature: f"needs vmx-{needed}"},
                _newer_hardware(facts, needed),
                severity=Severity.INFO if feature == "vNUMA" and _small(facts) else None,
            )
    return None


def _newer_hardware(facts: Facts, needed: int) -> Fix:
    """An upgrade of the VM; first of its host, if that is too old."""
    host = facts.host.release.version if facts.subject.host else ""
    old = (esxi.newest_hardware(host) or needed) < needed
    first = f"Plan without it, or first upgrade ESXi {host}. " if old else ""
    return Fix(
        f"{first}Upgrade the VM's compatibility to hardware version {needed} or later, with the VM off."
    )


def _has_node_size(settings: Settings) -> bool:
    return bool(settings.get("coresPerNumaNode")) and not settings.get("autoCoresPerNumaNode")


def _small(facts: Facts) -> bool:
    """Whether the VM has no vNUMA in any hardware version, and no study needs it."""
    vcpus = facts.vm.settings.get("numCPUs")
    return not facts.studied and isinstance(vcpus, int) and vcpus < esxi.DEFAULT_MINIMUM_VCPUS
