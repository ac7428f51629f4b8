"""Rules on memory, power and what the host shows of placement."""

from __future__ import annotations

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import gigabytes, host_object, node_memory, nodes_needed
from vnuma.domain.vm.facts import CO_STOP_LIMIT, READY_LIMIT

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
    condition=(
        "memoryReservationLockedToMax is off and not all memory is reserved; worse if the VMs "
        "running on the host have more memory than the host"
    ),
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
    condition=(
        "the configured memory of the VM and of the other running VMs together exceeds the host's "
        "memory (a block if the VM's alone does); vSphere's API does not show how much is in use, and on "
        "which nodes"
    ),
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
    consequence=(
        "The host runs more vCPUs than it has CPUs for, or a limit holds the VM back. Queries take longer, "
        "and SQL Server cannot see why; timings of arms depend on what else runs."
    ),
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
    consequence=(
        "ESXi stops vCPUs that are ahead until the VM's other vCPUs have run. The host finds too few free "
        "CPUs for all of them, or a snapshot slows the VM's I/O down."
    ),
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
