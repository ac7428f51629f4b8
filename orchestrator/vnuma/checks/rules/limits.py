"""Rules on the VM's own limits, which apply whatever is free on the host."""

from __future__ import annotations

from vnuma.checks.facts import Facts, known
from vnuma.checks.finding import Fix, Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.shape_questions import gigabytes
from vnuma.checks.rules.sources import ALLOCATION_API, LATENCY, VM_OPERATOR

UNLIMITED = -1


@rule(
    "M08",
    Severity.WARN,
    "A memory limit is below the VM's memory",
    condition="the VM's own memory limit is set and below its configured memory",
    consequence=(
        "ESXi never gives the VM more than the limit: it reclaims the rest from the guest, however much "
        "memory the host has free. All memory cannot be reserved, since a limit must be at least the "
        "reservation."
    ),
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
    condition=(
        "the VM's own CPU limit is set and below its vCPUs times the host's nominal clock; pools above the "
        "VM are checked before a study (P37)"
    ),
    consequence=(
        "ESXi makes vCPUs wait once the VM has used up its limit, also on an idle host. Waiting vCPUs look "
        "slow in the guest, which does not know why."
    ),
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
    consequence=(
        "vSphere requires a reservation of all memory and of the CPUs for high latency sensitivity; each "
        "vCPU then has a core to itself. Without it ESXi may refuse to power the VM on."
    ),
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
