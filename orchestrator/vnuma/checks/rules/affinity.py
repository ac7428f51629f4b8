"""Rules on CPU and memory affinity: its requirements, side effects and leftovers."""

from __future__ import annotations

from vnuma.checks.facts import Facts, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import UNPIN, host_object, pinned

_ONE_A_CORE = {"affinity": "physical_cores"}


@rule(
    "A03",
    Severity.WARN,
    "Affinity ends NUMA management",
    condition="CPU or memory affinity is set",
    consequence="ESXi's NUMA scheduler no longer manages the VM, so pinning and vNUMA change at the same "
    "time.",
    fix="Treat affinity as a factor of its own. numa.nodeAffinity restricts nodes and keeps NUMA management.",
    sources=(sources.AFFINITY_7, sources.NUMA_CONTROLS_8),
    reads="vm",
    related=("A10", "T17"),
)
def a03(facts: Facts) -> Fail | None:
    memory = facts.setting("memoryAffinity") or ()
    if not facts.affinity and not memory:
        return None
    nodes = ",".join(map(str, memory)) if isinstance(memory, tuple) else str(memory)
    return Fail({"cpuAffinity": pinned(facts) or "none", "memoryAffinity": nodes or "none"}, UNPIN)


@rule(
    "A04",
    Severity.BLOCK,
    "Fewer CPUs in the affinity than vCPUs",
    condition="the affinity lists fewer logical CPUs than the VM has vCPUs; a note if it lists every CPU of "
    "the host",
    consequence="vSphere refuses it: it requires at least as many CPUs as vCPUs. A list of every CPU counts "
    "as no affinity.",
    fix="Add CPUs to the list, or clear it.",
    sources=(sources.AFFINITY_8,),
    reads="vm",
    related=("A05", "A06"),
)
def a04(facts: Facts) -> Fail | None:
    if not facts.affinity:
        return None
    seen = {"cpuAffinity": pinned(facts), "vCPUs": str(facts.vcpus)}
    if len(facts.affinity) < facts.vcpus:
        return Fail(seen, Fix(f"List at least {facts.vcpus} CPUs.", arm=_ONE_A_CORE))
    host = facts.subject.host
    if host and len(facts.affinity) == host.threads:
        return Fail(seen, UNPIN, severity=Severity.INFO)
    return None


@rule(
    "A05",
    Severity.WARN,
    "No CPU left for the VM's other work",
    condition="the affinity lists exactly as many logical CPUs as the VM has vCPUs",
    consequence="The affinity binds all of the VM's worlds, including those for the console and for I/O: "
    "they take time from the vCPUs.",
    fix="List at least one more CPU; compare only arms with the same affinity.",
    sources=(sources.AFFINITY_8,),
    reads="vm",
    related=("A04", "A06"),
)
def a05(facts: Facts) -> Fail | None:
    if not facts.affinity or len(facts.affinity) != facts.vcpus:
        return None
    return Fail({"cpuAffinity": pinned(facts), "vCPUs": str(facts.vcpus)}, _one_more(facts))


def _one_more(facts: Facts) -> Fix | None:
    """The same list with one CPU of another core on a node already used; None without one."""
    host = facts.subject.host
    if host is None:
        return None
    cores = host.core_of_cpu
    used = {cores[cpu] for cpu in facts.affinity if cpu in cores}
    nodes = [node for node in host.numa_nodes if set(node.cpus) & set(facts.affinity)]
    free = [cpu for node in nodes for cpu in node.cpus if cores[cpu] not in used]
    spare = free or [cpu for node in nodes for cpu in node.cpus if cpu not in facts.affinity]
    if not spare:
        return None
    cpus = tuple(sorted((*facts.affinity, spare[0])))
    return Fix(
        f"Add CPU {spare[0]} to the list.", arm={"affinity": list(cpus)}, settings={"cpuAffinity": cpus}
    )


@rule(
    "A06",
    Severity.BLOCK,
    "vCPUs are pinned to threads of the same cores",
    condition="hyper-threading is on and the affinity lists both threads of a core; a note if it still "
    "covers a core for each vCPU",
    consequence="Two vCPUs share a core: with hyper-threading, CPUs 0 to 15 are 8 cores.",
    fix="List one CPU of each core (0,2,4 and so on), as affinity: physical_cores does.",
    sources=(sources.HYPER_THREADING,),
    reads="vm host",
    related=("A04", "A05"),
)
def a06(facts: Facts) -> Fail | None:
    if not facts.affinity or facts.host.threads_per_core < 2:
        return None
    cores = facts.host.core_of_cpu
    used = {cores[cpu] for cpu in facts.affinity if cpu in cores}
    if len(used) == len(facts.affinity):
        return None
    return Fail(
        {"cpuAffinity": pinned(facts), "cores covered": str(len(used)), "vCPUs": str(facts.vcpus)},
        Fix("Pin to one CPU of each core.", arm=_ONE_A_CORE),
        severity=None if len(used) < facts.vcpus else Severity.INFO,
    )


@rule(
    "A07",
    Severity.WARN,
    "The affinity spans host NUMA nodes",
    condition="the affinity lists CPUs of several host NUMA nodes, though one could hold the vCPUs",
    consequence="Part of the memory is remote by construction.",
    fix="Take the CPUs from one node's own list.",
    sources=(
        "https://developer.broadcom.com/xapis/vsphere-web-services-api/8.0U3/vim.host.NumaNode.html",
        sources.NUMA_CONTROLS_8,
    ),
    reads="vm host",
    related=("A03",),
)
def a07(facts: Facts) -> Fail | None:
    cpus = set(facts.affinity)
    spanned = [node for node in facts.host.numa_nodes if cpus & set(node.cpus)]
    if len(spanned) < 2 or facts.vcpus > facts.cores_per_node:
        return None
    return Fail(
        {"cpuAffinity": pinned(facts), "host NUMA nodes": ", ".join(str(node.id) for node in spanned)},
        Fix("Pin to one CPU of each core of one node.", arm=_ONE_A_CORE),
    )


@rule(
    "A08",
    Severity.WARN,
    "Pinning is not exclusive",
    condition="CPU affinity is set while other VMs run on the host, and latency sensitivity is not high",
    consequence="Other VMs may use the same cores at any time.",
    fix="Empty the host, or use latency sensitivity high with CPU and memory fully reserved.",
    sources=(sources.PINNING, sources.VM_OPERATOR),
    reads="vm host",
)
def a08(facts: Facts) -> Fail | None:
    if not facts.affinity or facts.setting("latencySensitivity") == "high":
        return None
    others = known(facts.host.powered_on_mb, "which other VMs run on the host").keys() - {facts.vm.moid}
    if not others:
        return None
    return Fail({"cpuAffinity": pinned(facts), "other VMs running on the host": str(len(others))})


@rule(
    "A09",
    Severity.WARN,
    "CPU reservation and affinity conflict",
    condition="CPU affinity and a CPU reservation are both set",
    consequence="Admission control ignores affinity: the VM may not get what it reserved.",
    fix="Remove one of the two.",
    sources=(sources.AFFINITY_7,),
    reads="vm",
)
def a09(facts: Facts) -> Fail | None:
    reserved = facts.number("cpuReservation")
    if not facts.affinity or not reserved:
        return None
    return Fail(
        {"cpuAffinity": pinned(facts), "cpuReservation": f"{reserved} MHz"},
        Fix("Remove the CPU reservation.", arm={"cpu_reservation": "none"}, settings={"cpuReservation": 0}),
    )


@rule(
    "A10",
    Severity.WARN,
    "Memory does not follow the pinned CPUs",
    condition="CPU affinity is set and the host's Numa.AutoMemAffinity is 0, without memory affinity",
    consequence="Memory may be allocated on other nodes than the vCPUs.",
    fix="Set Numa.AutoMemAffinity to 1 (the default).",
    sources=(sources.ATTRIBUTES_55,),
    reads="vm host",
    related=("A03",),
)
def a10(facts: Facts) -> Fail | None:
    if not facts.affinity or facts.setting("memoryAffinity"):
        return None
    if (facts.option("Numa.AutoMemAffinity") or "1").strip() != "0":
        return None
    return Fail(
        {"cpuAffinity": pinned(facts), "Numa.AutoMemAffinity": "0"},
        Fix(
            "Set the host's advanced option to 1.",
            commands="esxcli system settings advanced set -o /Numa/AutoMemAffinity -i 1",
        ),
        object=host_object(facts.host),
    )


@rule(
    "A12",
    Severity.WARN,
    "Only one thread of each core is used",
    condition="hyper-threading is on but not active: the host uses the side-channel-aware scheduler SCAv1 "
    "(boot options hyperthreadingMitigation and hyperthreadingMitigationIntraVM)",
    consequence="Half of the logical CPUs stay unused: both threads of a core in an affinity are one CPU. "
    "Timings are comparable only with those of hosts that use the same scheduler.",
    fix="Pin to one CPU of each core, and study only hosts with the same scheduler. SCAv2 uses both "
    "threads; the security team decides whether it is safe enough.",
    sources=(
        sources.SCHEDULERS,
        sources.SCHEDULER_PLANNING,
        "https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/HostHyperThreadScheduleInfo",
    ),
    reads="vm host",
    related=("A06", "T16"),
)
def a12(facts: Facts) -> Fail | None:
    host = facts.host
    if known(host.threads_used, "whether ESXi schedules on every thread of a core"):
        return None
    if host.threads_per_core < 2:  # hyper-threading was configured and takes effect with the host's next boot
        return None
    seen = {"vCPUs / cores of the host": f"{facts.vcpus} / {host.cores}"}
    if facts.affinity:
        cores = host.core_of_cpu
        used = len({cores[cpu] for cpu in facts.affinity if cpu in cores})
        seen |= {"cpuAffinity": pinned(facts), "CPUs that it comes to": str(used)}
    return Fail(seen, object=host_object(host))


@rule(
    "A01",
    Severity.BLOCK,
    "DRS may move a pinned VM",
    condition="CPU affinity is set, or the VM is under study, in a cluster with DRS on; a warning if the "
    "VM's own DRS level is Disabled",
    consequence="A list of CPUs is valid for one host only. DRS may place the VM elsewhere at any power-on; "
    "vSphere hides the setting for VMs in a DRS cluster.",
    fix="Use a host outside DRS, or set the VM's DRS level to Disabled.",
    sources=(
        sources.AFFINITY_8,
        "https://github.com/ansible-collections/community.vmware/issues/2338",
    ),
    reads="vm cluster",
    related=("A02",),
)
def a01(facts: Facts) -> Fail | None:
    if not (facts.affinity or facts.studied) or not known(facts.cluster.drs_enabled, "the cluster's DRS"):
        return None
    kept = facts.vm.drs_override == "disabled"
    if kept and not facts.affinity:
        return None
    return Fail(
        {
            "DRS": f"on in {facts.cluster.name}",
            "DRS level of the VM": facts.vm.drs_override or "as the cluster",
            "cpuAffinity": pinned(facts) or "none",
        },
        Fix(f"Set the DRS level of {facts.vm.name} to Disabled (Host.Inventory.EditCluster)."),
        severity=Severity.WARN if kept else None,
    )


@rule(
    "A02",
    Severity.BLOCK,
    "A pinned VM cannot be moved while it runs",
    condition="CPU affinity is set",
    consequence="vMotion fails with AffinityConfigured, so its host cannot enter maintenance mode without a "
    "shutdown.",
    fix="Clear the affinity before the VM returns to service; a study restores it automatically.",
    sources=(
        "https://developer.broadcom.com/xapis/vsphere-web-services-api/8.0U3/vim.fault.AffinityConfigured.html",
    ),
    reads="vm",
    in_study=Severity.INFO,
    related=("A01", "A11"),
)
def a02(facts: Facts) -> Fail | None:
    return Fail({"cpuAffinity": pinned(facts)}, UNPIN) if facts.affinity else None


@rule(
    "A11",
    Severity.INFO,
    "Clearing affinity needs an empty list",
    condition="CPU affinity is set, so somebody will have to clear it",
    consequence="A null affinitySet leaves the affinity unchanged; only an empty list removes it.",
    fix="Send cpuAffinity.affinitySet = [] (vnuma restore does).",
    sources=(sources.AFFINITY_API,),
    reads="vm",
    related=("A02",),
)
def a11(facts: Facts) -> Fail | None:
    return Fail({"cpuAffinity": pinned(facts)}, UNPIN) if facts.affinity else None
