"""Topology rules on features of a release or hardware version, and their interaction."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.checks.facts import Facts
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Applies, Fail, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import NO_HOT_ADD
from vnuma.checks.subject import EXTRA_CONFIG
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.topology import unfit_node_size
from vnuma.domain.vm.setting import Settings


@rule(
    "T11",
    Severity.BLOCK,
    "CPU hot-add hides NUMA from the guest",
    condition="CPU hot-add is on, ESXi 6.5 to 7.0; a note if the VM would have one node anyway",
    consequence=(
        "CPU hot-add turns vNUMA off: Windows and SQL Server see one flat node, and do not know that "
        "part of the memory is remote. Windows may also show empty nodes."
    ),
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
    condition=(
        "CPU hot-add is on, ESXi 8 or later, exposeVnumaOnCpuHotadd is off; a note if the VM would "
        "have one node anyway"
    ),
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
    condition=(
        "hardware version below 8 (no vNUMA; a note for up to 8 vCPUs outside a study), or below 20 "
        "with virtualNuma set (no manual node size)"
    ),
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
                Fix(
                    f"Upgrade the VM's compatibility to hardware version {needed} or later, with the VM off."
                ),
                severity=Severity.INFO if feature == "vNUMA" and _small(facts) else None,
            )
    return None


def _has_node_size(settings: Settings) -> bool:
    return bool(settings.get("coresPerNumaNode")) and not settings.get("autoCoresPerNumaNode")


def _small(facts: Facts) -> bool:
    """Whether the VM has no vNUMA in any hardware version, and no study needs it."""
    vcpus = facts.vm.settings.get("numCPUs")
    return not facts.studied and isinstance(vcpus, int) and vcpus < esxi.DEFAULT_MINIMUM_VCPUS
