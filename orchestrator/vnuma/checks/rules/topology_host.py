"""Topology rules on the host's NUMA layout, the cluster, and restricted placement."""

from __future__ import annotations

import re

from vnuma.checks.facts import DESCRIBED, Facts, Unknown, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import host_object, node_memory, without_stored
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.release import HOST_PREFER_HT, PREFER_HT
from vnuma.domain.vm.facts import HostFacts
from vnuma.words.plain_text import gigabytes


@rule(
    "T16",
    Severity.WARN,
    "Threads are counted as cores",
    condition="numa.vcpu.preferHT on the VM or Numa.PreferHT on the host is on",
    consequence="ESXi counts logical CPUs when it sizes nodes: a VM up to twice as wide fits one node, with "
    "two vCPUs per core.",
    fix="Turn it off for a study that counts cores; otherwise keep it on purpose.",
    sources=(sources.DECOUPLED, sources.ADVANCED_65),
    reads="vm host",
)
def t16(facts: Facts) -> Fail | None:
    if facts.key_on(PREFER_HT):
        return Fail(
            {PREFER_HT: str(facts.key(PREFER_HT))},
            Fix(
                f"Remove {PREFER_HT} with the VM off.", arm={"prefer_ht": "auto"}, settings={PREFER_HT: None}
            ),
        )
    if (facts.option(HOST_PREFER_HT) or "0").strip() in {"1", "true"}:
        return Fail(
            {HOST_PREFER_HT: "1"},
            Fix(
                "Set the host's advanced option to 0.",
                commands="esxcli system settings advanced set -o /Numa/PreferHT -i 0",
            ),
            object=host_object(facts.host),
        )
    return None


@rule(
    "T17",
    Severity.WARN,
    "The VM is bound to host NUMA nodes",
    condition="numa.nodeAffinity is set",
    consequence="ESXi still manages the VM's NUMA placement, but only on these nodes: it cannot balance the "
    "host freely.",
    fix="Remove numa.nodeAffinity unless it is a factor of the study.",
    sources=(sources.NUMA_CONTROLS_8,),
    reads="vm",
    related=("A03",),
)
def t17(facts: Facts) -> Fail | None:
    nodes = facts.key("numa.nodeAffinity")
    if nodes is None:
        return None
    return Fail(
        {"numa.nodeAffinity": nodes},
        Fix(
            "Remove numa.nodeAffinity with the VM off.",
            arm={"numa_node_affinity": "none"},
            settings={"numa.nodeAffinity": None},
        ),
    )


@rule(
    "T19",
    Severity.WARN,
    "Hosts of this cluster differ",
    condition="hosts of the VM's cluster differ in cores per NUMA node, number of NUMA nodes or memory per "
    "node; a note if this VM gets the same nodes on each",
    consequence="The guest's nodes are fixed at power-on. After a move to a host of another shape they are "
    "spread differently and no longer match.",
    fix="Size the VM to the smallest host; power-cycle it after a move.",
    sources=(sources.MISMATCH, sources.VMCO),
    reads="vm cluster",
    related=("T14", "T20"),
)
def t19(facts: Facts) -> Fail | None:
    cluster = facts.cluster
    if len(cluster.shapes) < 2:
        if cluster.unread:
            raise Unknown(f"hosts {', '.join(cluster.unread)} of {cluster.name} could not be read")
        return None
    facts.key("numa.autosize.once")
    facts.require_whole_sockets()
    settings, hosts = without_stored(facts.vm.settings), cluster.shapes.values()
    seen = {predict(host_shape(host), settings, facts.hardware).node_sizes for host in hosts}
    local = {facts.memory_mb <= host.local_memory_mb for host in hosts}
    alike = len(seen) == 1 and len(local) == 1
    smallest = min(hosts, key=lambda host: (host.cores_per_node, host.node_memory_mb))
    shapes = {"host shapes": "; ".join(_shape(host) for host in hosts)}
    counts = " or ".join(str(count) for count in sorted({len(sizes) for sizes in seen}))
    return Fail(
        shapes if alike else {**shapes, "predicted nodes": counts},
        Fix(
            f"Size the VM for {smallest.name}: at most {smallest.cores_per_node} vCPUs and "
            f"{gigabytes(smallest.local_memory_mb)} per node."
        ),
        severity=Severity.INFO if alike else None,
        object=("cluster", cluster.name, cluster.moid),
        matters="This VM gets the same nodes on each of them." if alike else "",
    )


def _shape(host: HostFacts) -> str:
    memory = node_memory(host)
    return f"{len(host.numa_nodes)} x {host.cores_per_node} cores, {memory} ({host.name})"


@rule(
    "T20",
    Severity.WARN,
    "NUMA nodes are not sockets on this host",
    condition="the host's number of NUMA nodes differs from its number of processor packages (sub-NUMA "
    "clustering, cluster on die, NPS2/NPS4, last-level cache as NUMA)",
    consequence="A NUMA node has fewer cores and less memory than a socket: advice based on sockets is "
    "wrong here.",
    fix="Size by the host's own list of NUMA nodes; record the BIOS mode. According to VMware sub-NUMA "
    "clustering constrains large VMs, and CCX-as-NUMA should be off on ESXi 8 and later.",
    sources=(sources.SUB_NUMA, sources.SQL_64_CORES, sources.EPYC_BIOS, sources.VMCO),
    reads="host",
    related=("T22",),
)
def t20(facts: Facts) -> Fail | None:
    host = _with_packages(facts)
    if len(host.numa_nodes) in {1, host.packages}:
        return None
    return Fail(
        {
            "packages": str(host.packages),
            "NUMA nodes": str(len(host.numa_nodes)),
            "cores a node": str(host.cores_per_node),
        },
        object=host_object(host),
    )


def _with_packages(facts: Facts) -> HostFacts:
    """The host, if its NUMA nodes and processor packages are known independently."""
    host = facts.host
    if host.described:
        raise Unknown(f"{DESCRIBED}: its processor packages are unknown")
    if host.numa_reported is False:
        raise Unknown("the host reports no list of NUMA nodes")
    return host


# Cores that share a last-level cache, by an EPYC's model without its middle: Naples, Rome, Milan, Genoa with
# Bergamo. Of 9005 some have 8, others 16.
CORE_COMPLEX = {"71": 4, "72": 4, "73": 8, "94": 8}


@rule(
    "T21",
    Severity.INFO,
    "A cache boundary runs inside the NUMA node",
    condition="the host has AMD EPYC processors and cores per socket are not a multiple of a core complex "
    "(up to 4 cores on 7001 and 7002, 8 on 7003 and 9004)",
    consequence="Cores of a node do not all share one last-level cache; a virtual socket that crosses the "
    "boundary hides it from the guest.",
    fix="Consider a multiple of the core complex as cores per socket, and measure.",
    sources=(sources.CORES_PER_SOCKET_7, sources.EPYC_BIOS, sources.EPYC_9004),
    reads="vm host",
)
def t21(facts: Facts) -> Fail | None:
    model = known(facts.host.cpu_model or None, "the host's processor model")
    if "EPYC" not in model.upper():
        return None
    found = re.search(r"EPYC\s+([79])[0-9A-Z]\w([1-5])", model, re.IGNORECASE)
    if not found or "".join(found.groups()) not in CORE_COMPLEX:
        raise Unknown(f"the size of a core complex is unknown for {model}")
    complex_ = CORE_COMPLEX["".join(found.groups())]
    if facts.vcpus <= complex_ or facts.per_socket % complex_ == 0:
        return None
    return Fail(
        {"processor": model, "core complex": f"{complex_} cores", "cores per socket": str(facts.per_socket)}
    )


@rule(
    "T22",
    Severity.BLOCK,
    "Host interleaves memory over its nodes",
    condition="two or more processor packages, but one NUMA node",
    consequence="Part of every VM's memory is remote and no topology can change that: there is no NUMA to "
    "use or study.",
    fix="Turn node interleaving off in the host's BIOS (needs a host reboot).",
    sources=(sources.INTERLEAVING,),
    reads="host",
    related=("T20",),
)
def t22(facts: Facts) -> Fail | None:
    host = _with_packages(facts)
    if host.is_virtual:
        raise Unknown("the host is a virtual machine: its BIOS has no node interleaving")
    if len(host.numa_nodes) > 1 or host.packages < 2:
        return None
    return Fail(
        {"host packages": str(host.packages), "host NUMA nodes": "1"},
        Fix("Turn node interleaving off in the host's BIOS.", commands="BIOS: Node Interleaving = Disabled"),
        object=host_object(host),
    )


@rule(
    "T24",
    Severity.WARN,
    "The guest still has an older topology",
    condition="the number of sockets or CPUs in SQL Server differs from the VM's configuration",
    consequence="The VM was not power-cycled after its shape was edited: the guest still has the old one.",
    fix="Power the VM off and on. For stored numa.* keys only, vmx.reboot.PowerCycle = TRUE makes the next "
    "guest reboot a power-cycle.",
    sources=(sources.MISMATCH,),
    reads="vm sql",
    yields_to={"W03": "The guest uses a different number of CPUs: see W03 first."},
    related=("T14", "S06", "W02"),
)
def t24(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    cpus, sockets = facts.sql.topology.vcpus, facts.sql.topology.sockets
    if cpus == facts.vcpus and sockets in {None, facts.sockets}:
        return None
    seen = f"{sockets} sockets {cpus} CPUs" if sockets else f"{cpus} CPUs"
    return Fail({"configured": f"{facts.sockets} sockets {facts.vcpus} CPUs", "guest": seen})
