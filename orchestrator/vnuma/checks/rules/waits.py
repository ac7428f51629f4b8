"""Rules on waiting for the host's CPUs: CPU ready and co-stop."""

from __future__ import annotations

from vnuma.checks.facts import Facts, known
from vnuma.checks.finding import Severity
from vnuma.checks.rule import Fail, rule
from vnuma.checks.rules.sources import CPU_READY
from vnuma.domain.vm.cpu_waits import CO_STOP_LIMIT, READY_LIMIT


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
    sources=(CPU_READY, "https://xormon.com/VMware-CPU-monitoring.php"),
    needs="vm waits",
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
        CPU_READY,
        "https://virtual-talks.com/2020/06/30/what-is-cstp-or-cstop",
        "https://ntpro.nl/blog/archives/2536-High-co-stop-values-seen-during-virtual-machine-snapshot-activities.html",
    ),
    needs="vm waits",
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
