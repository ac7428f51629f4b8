"""Rules on memory, on the limits of a VM, and on what vSphere accepts."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import host_object, node_memory, nodes_needed
from vnuma.checks.rules.sources import (
    ALLOCATION_API,
    HARDWARE_22,
    HARDWARE_FEATURES,
    HARDWARE_VERSIONS,
    LATENCY,
    VM_OPERATOR,
)
from vnuma.domain.topology.release import MOST_MEMORY_GB, most_of_hardware, newest_hardware
from vnuma.domain.vm.facts import CO_STOP_LIMIT, READY_LIMIT
from vnuma.words.plain_text import gigabytes

_LOCK = Fix(
    "Reserve all guest memory (All locked); the swap file goes too.",
    arm={"memory_reservation": "locked"},
    settings={"memoryReservationLockedToMax": True},
)
# Below this share of local memory a cited checklist calls the VM unhealthy (80 to 95 are all in use).
LOCAL_ENOUGH = 95.0


@rule(
    "M01",
    Severity.INFO,
    "Memory is not fully reserved",
    condition="memoryReservationLockedToMax is off and not all memory is reserved; worse if the VMs running "
    "on the host have more memory than the host",
    consequence="Ballooning and swapping can take memory away and change results.",
    fix="Reserve all memory of a VM that is measured or latency-sensitive.",
    sources=(sources.VM_OPERATOR,),
    reads="vm",
    in_study=Severity.WARN,
    related=("M02",),
)
def m01(facts: Facts) -> Fail | None:
    if facts.number("memoryReservation") >= facts.memory_mb or facts.on("memoryReservationLockedToMax"):
        return None
    full = _overcommitted(facts)
    worse = Severity.BLOCK if facts.studied else Severity.WARN
    return Fail(
        {
            "reserved": f"{gigabytes(facts.number('memoryReservation'))} of {gigabytes(facts.memory_mb)}",
            "host": "memory overcommitted" if full else "memory overcommitment unknown",
        },
        _LOCK,
        severity=worse if full else None,
    )


def _overcommitted(facts: Facts) -> bool:
    host = facts.subject.host
    return bool(host and host.running_mb and host.running_mb > host.memory_mb)


@rule(
    "M02",
    Severity.WARN,
    "The target nodes may not have enough free memory",
    condition="the configured memory of the VM and of the other running VMs together exceeds the host's "
    "memory (a block if the VM's alone does); vSphere's API does not show how much is in use, and on which "
    "nodes",
    consequence="What does not fit on its nodes is allocated on others; locked pages then stay remote.",
    fix="Free the node, or the host, before the power-on.",
    sources=(sources.LARGE_MEMORY,),
    reads="vm host",
    in_study=Severity.BLOCK,
    related=("M01", "T09"),
)
def m02(facts: Facts) -> Fail | None:
    host, node = facts.host, facts.node_memory_mb
    if facts.memory_mb > host.largest_vm_mb:
        return Fail(
            {"memory": gigabytes(facts.memory_mb), "host memory": gigabytes(host.memory_mb)},
            Fix("Give the VM less memory than the host has, or another host."),
            severity=Severity.BLOCK,
            title="The VM's memory does not fit its host",
        )
    running = known(host.powered_on_mb, "the memory of other VMs on the host")
    others = known(host.running_mb, "the memory of other VMs on the host") - running.get(facts.vm.moid, 0)
    if others + facts.memory_mb <= min(host.memory_mb, _room(facts, node)):
        return None
    if others + facts.memory_mb <= host.memory_mb:
        node_words = f"memory of a node: {node_memory(host)}"
        raise Unknown(f"other VMs run on the host, on NUMA nodes that are unknown ({node_words})")
    return Fail(
        {
            "memory": gigabytes(facts.memory_mb),
            "memory of other running VMs": gigabytes(others),
            "host memory": gigabytes(host.memory_mb),
        },
        object=host_object(host),
    )


def _room(facts: Facts, node_mb: int) -> int:
    """Free memory on the VM's nodes, if all other VMs were on one of them."""
    nodes = nodes_needed(facts)
    return node_mb * nodes if nodes > 1 else max(node_mb, facts.memory_mb)


@rule(
    "M03",
    Severity.WARN,
    "SQL Server does not lock its pages",
    condition="sql_memory_model is CONVENTIONAL",
    consequence="Windows may page SQL Server's memory out.",
    fix="Give the service account the right Lock Pages in Memory, and reserve the VM's memory.",
    sources=(
        "https://learn.microsoft.com/sql/database-engine/configure-windows/"
        "enable-the-lock-pages-in-memory-option-windows",
    ),
    reads="sql",
    related=("M01",),
)
def m03(facts: Facts) -> Fail | None:
    model = known(facts.sql.server.memory_model, "sql_memory_model (2012 SP4, 2016 SP1 and later have it)")
    return Fail({"sql_memory_model": model}) if model.upper() == "CONVENTIONAL" else None


@rule(
    "M04",
    Severity.WARN,
    "Host power policy is not High performance",
    condition="the host's power policy is not High performance, and the VM has more than 8 vCPUs",
    consequence="Clock frequency changes with load, and timings change with it.",
    fix="Set the policy to High performance (no reboot).",
    sources=(sources.VMCO,),
    reads="vm host",
)
def m04(facts: Facts) -> Fail | None:
    policy = known(facts.host.power_policy, "the host's power policy")
    if policy == "static" or facts.vcpus <= 8:
        return None
    return Fail(
        {"power policy": _POLICIES.get(policy, policy)},
        Fix(
            "Set the host's power policy to High performance.",
            commands='esxcli system settings advanced set -o /Power/CpuPolicy -s "High Performance"',
        ),
        object=host_object(facts.host),
    )


_POLICIES = {"static": "High performance", "dynamic": "Balanced", "low": "Low power", "custom": "Custom"}


@rule(
    "M05",
    Severity.WARN,
    "Remote memory is in use",
    condition="N%L, the share of touched memory that is local, is below 95; memory that the guest has not "
    "touched yet does not count",
    consequence="Part of the touched memory lies on other nodes.",
    fix="Find out why (free memory on the node, moves between nodes); a cell of a local arm is not valid.",
    sources=(
        "http://www.datacenterdan.com/blog/vsphere-55-bptroubleshooting03-esxtop-memory",
        "http://tech-jockey.blogspot.com/2016/12/",
    ),
    reads="placement",
    related=("M06",),
)
def m05(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    local = known(facts.placement.local_percent, "N%L")
    return Fail({"N%L": f"{local:.4g}"}) if local < LOCAL_ENOUGH else None


@rule(
    "M06",
    Severity.WARN,
    "The VM changed NUMA nodes",
    condition="NMIG is above 0, or the home node at the end differs from that at the start",
    consequence="What ran meanwhile has no single layout: memory follows its vCPUs slowly.",
    fix="Check what else runs on the node; repeat what was measured meanwhile.",
    sources=("http://www.datacenterdan.com/blog/vsphere-55-bptroubleshooting03-esxtop-memory",),
    reads="placement",
    related=("M05",),
)
def m06(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    placed = facts.placement
    before, after = placed.home_nodes_before, placed.home_nodes_after
    if placed.migrations is None and (before is None or after is None):
        raise Unknown("neither NMIG nor the home nodes before and after were read")
    moved = before is not None and after is not None and sorted(before) != sorted(after)
    if not placed.migrations and not moved:
        return None
    return Fail(
        {
            "NMIG": "not read" if placed.migrations is None else str(placed.migrations),
            "home nodes": f"{_listed(before)}, then {_listed(after)}",
        }
    )


def _listed(nodes: tuple[int, ...] | None) -> str:
    return "not read" if nodes is None else ",".join(map(str, nodes))


@rule(
    "M09",
    Severity.WARN,
    "vCPUs wait for CPUs of the host",
    condition="in the mean of the last hour, CPU ready is more than 5% of a vCPU's time",
    consequence="The host runs more vCPUs than it has CPUs for, or a limit holds the VM back. Queries take "
    "longer, and SQL Server cannot see why; timings of arms depend on what else runs.",
    fix="Move VMs off the host, remove CPU limits, or give VMs fewer vCPUs.",
    sources=(sources.CPU_READY, "https://xormon.com/VMware-CPU-monitoring.php"),
    reads="vm waits",
    unconfirmed=True,
    related=("M10", "A13"),
)
def m09(facts: Facts) -> Fail | None:
    ready = known(facts.waits.ready, "CPU ready")
    if ready <= READY_LIMIT:
        return None
    return Fail({"CPU ready": _percent(ready), "vCPUs": str(facts.vcpus)})


@rule(
    "M10",
    Severity.WARN,
    "vCPUs are stopped to wait for each other",
    condition="in the mean of the last hour, co-stop is more than 3% of a vCPU's time",
    consequence="ESXi stops vCPUs that are ahead until the VM's other vCPUs have run. The host finds too "
    "few free CPUs for all of them, or a snapshot slows the VM's I/O down.",
    fix="Give the VM fewer vCPUs, move other VMs off the host, and delete old snapshots.",
    sources=(
        sources.CPU_READY,
        "https://virtual-talks.com/2020/06/30/what-is-cstp-or-cstop",
        "https://ntpro.nl/blog/archives/2536-High-co-stop-values-seen-during-virtual-machine-snapshot-activities.html",
    ),
    reads="vm waits",
    unconfirmed=True,
    related=("M09",),
)
def m10(facts: Facts) -> Fail | None:
    co_stop = known(facts.waits.co_stop, "co-stop")
    if co_stop <= CO_STOP_LIMIT:
        return None
    return Fail({"co-stop": _percent(co_stop), "vCPUs": str(facts.vcpus)})


def _percent(share: float) -> str:
    return f"{share * 100:.1f}% of a vCPU's time"


UNLIMITED = -1


@rule(
    "M08",
    Severity.WARN,
    "A memory limit is below the VM's memory",
    condition="the VM's own memory limit is set and below its configured memory",
    consequence="ESXi never gives the VM more than the limit: it reclaims the rest from the guest, however "
    "much memory the host has free. All memory cannot be reserved, since a limit must be at least the "
    "reservation.",
    fix="Set the memory limit to Unlimited.",
    sources=(ALLOCATION_API,),
    reads="vm",
    in_study=Severity.BLOCK,
    related=("M01", "A13"),
)
def m08(facts: Facts) -> Fail | None:
    limit = _limit(facts, "memoryLimit")
    if limit <= UNLIMITED or limit >= facts.memory_mb:
        return None
    return Fail(
        {"memory limit": gigabytes(limit), "memory": gigabytes(facts.memory_mb)},
        Fix("Set the memory limit to Unlimited.", settings={"memoryLimit": UNLIMITED}),
    )


@rule(
    "A13",
    Severity.WARN,
    "A CPU limit is below the VM's vCPUs",
    condition="the VM's own CPU limit is set and below its vCPUs times the host's nominal clock; pools "
    "above the VM are checked before a study (P37)",
    consequence="ESXi makes vCPUs wait once the VM has used up its limit, also on an idle host. Waiting "
    "vCPUs look slow in the guest, which does not know why.",
    fix="Set the CPU limit to Unlimited.",
    sources=(ALLOCATION_API,),
    reads="vm host",
    related=("M08",),
)
def a13(facts: Facts) -> Fail | None:
    limit = _limit(facts, "cpuLimit")
    if limit <= UNLIMITED:
        return None
    clock = known(facts.host.mhz or None, "the clock of the host's cores")
    if limit >= facts.vcpus * clock:
        return None
    return Fail(
        {"CPU limit": f"{limit:,} MHz", "vCPUs x clock": f"{facts.vcpus} x {clock:,} MHz"},
        Fix("Set the CPU limit to Unlimited.", settings={"cpuLimit": UNLIMITED}),
    )


@rule(
    "M11",
    Severity.WARN,
    "Latency sensitivity high without its reservations",
    condition="latency sensitivity is high, and not all memory is reserved, or no CPU",
    consequence="vSphere requires a reservation of all memory and of the CPUs for high latency sensitivity; "
    "each vCPU then has a core to itself. Without it ESXi may refuse to power the VM on.",
    fix="Reserve all memory, and the VM's CPUs; or set latency sensitivity to normal.",
    sources=(LATENCY, VM_OPERATOR),
    reads="vm",
    related=("M01", "A08"),
)
def m11(facts: Facts) -> Fail | None:
    if facts.setting("latencySensitivity") != "high":
        return None
    locked = facts.on("memoryReservationLockedToMax")
    reserved = facts.memory_mb if locked else facts.number("memoryReservation")
    no_cpu = facts.vm.settings.get("cpuReservation") == 0
    observed = {
        "latency sensitivity": "high",
        "reserved": f"{gigabytes(reserved)} of {gigabytes(facts.memory_mb)}{', no CPU' if no_cpu else ''}",
    }
    if reserved < facts.memory_mb:
        locking = Fix(
            "Reserve all memory with the VM off; reserve its CPUs too.",
            arm={"memory_reservation": "locked"},
            settings={"memoryReservationLockedToMax": True},
        )
        return Fail(observed, locking)
    full = Fix("Reserve the clock of a core for each vCPU.", arm={"cpu_reservation": "full"})
    return Fail(observed, full) if no_cpu else None


def _limit(facts: Facts, name: str) -> int:
    """The limit in its unit; -1: none. Raises Unknown if it was not read."""
    value = facts.setting(name)
    return known(value if isinstance(value, int) else None, name)


@rule(
    "R06",
    Severity.BLOCK,
    "More cores per socket than the host supports",
    condition="cores per socket exceed the host's maximum for a virtual socket",
    consequence="vSphere refuses it: NumVirtualCoresPerSocketNotSupported.",
    fix="Use fewer cores per socket, or a newer hardware version.",
    sources=(
        "https://developer.broadcom.com/xapis/vsphere-web-services-api/7.0u3/"
        "vim.fault.NumVirtualCoresPerSocketNotSupported.html",
    ),
    reads="vm host",
)
def r06(facts: Facts) -> Fail | None:
    most = facts.host.max_cores_per_socket
    if most is None:
        raise Unknown("the host's maximum (its ConfigOption) is read only for single VMs and studies")
    if facts.per_socket <= most:
        return None
    return Fail({"cores per socket": str(facts.per_socket), "maximum": str(most)})


@rule(
    "R07",
    Severity.BLOCK,
    "The hardware version is newer than the host",
    condition="the VM's hardware version is newer than the newest that the host's ESXi release runs",
    consequence="The host cannot run the VM: it neither powers on there nor moves there.",
    fix="Use a hardware version that the oldest host runs, or upgrade ESXi.",
    sources=(HARDWARE_VERSIONS,),
    reads="vm host",
    related=("T18",),
)
def r07(facts: Facts) -> Fail | None:
    version = facts.host.release.version
    newest = newest_hardware(version)
    if newest is None:
        raise Unknown(f"the newest hardware version of ESXi {version} is not known")
    if facts.hardware <= newest:
        return None
    return Fail(
        {"hardware version": f"vmx-{facts.hardware}", "ESXi": f"{version} runs up to vmx-{newest}"},
        Fix(
            f"Plan hardware version {newest} or earlier, or upgrade ESXi. An existing VM can go back only by "
            "a snapshot or backup."
        ),
    )


@rule(
    "R08",
    Severity.BLOCK,
    "More than the hardware version allows",
    condition="more vCPUs or memory than the VM's hardware version allows: 32 vCPUs in version 8, 64 in 9 "
    "and 10, 128 in 11 to 14, 256 in 15 to 17, 768 in 18 to 21, 960 in 22",
    consequence="vSphere refuses the size, or does not power the VM on.",
    fix="Upgrade the VM's compatibility with the VM off, or use a smaller size.",
    sources=(HARDWARE_FEATURES, HARDWARE_22),
    reads="vm",
    related=("T18",),
)
def r08(facts: Facts) -> Fail | None:
    most = most_of_hardware(facts.hardware)
    if most is None:
        raise Unknown(f"the limits of hardware version {facts.hardware} are not known")
    vcpus, memory_gb = most
    fits = facts.memory_mb <= (memory_gb or MOST_MEMORY_GB) * 1024
    if facts.vcpus <= vcpus and fits:
        return None
    if facts.vcpus <= vcpus and memory_gb is None:
        raise Unknown(f"the most memory of hardware version {facts.hardware} is not known")
    return Fail(
        {
            "hardware version": f"vmx-{facts.hardware}",
            "vCPUs": f"{facts.vcpus} of at most {vcpus}",
            "memory": gigabytes(facts.memory_mb) + (f" of at most {memory_gb} GB" if memory_gb else ""),
        }
    )
