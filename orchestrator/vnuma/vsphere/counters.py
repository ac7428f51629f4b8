"""vSphere's real-time counters of the VM and its host while a boot was measured.

Real-time samples cover 20 seconds each and are kept for about an hour. There is no public counter of a VM's
NUMA home node or locality: esxtop and vmware.log have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.domain.vm.facts import CpuWaits, share_of_vcpu
from vnuma.vsphere.session import Session, VmRef

READY, CO_STOP = "cpu.ready.summation", "cpu.costop.summation"
OF_VM = (
    READY,
    CO_STOP,
    "cpu.usage.average",
    "mem.vmmemctl.average",
    "mem.swapped.average",
)
OF_HOST = ("cpu.usage.average", "mem.usage.average")
INTERVAL_S = 20
_KEPT_S = 3600
NO_NUMA = "vSphere's API has no counter for NUMA home node or locality; esxtop and vmware.log show them"


@dataclass(frozen=True)
class Series:
    """One counter during a boot's measurement, in its own `unit` per sample of `interval_s`."""

    unit: str
    interval_s: int
    samples: int
    mean: float
    highest: float


def counter_ids(session: Session) -> dict[str, int]:
    """The ids of our counters on this vCenter, by name; missing ones are left out."""
    wanted = {*OF_VM, *OF_HOST}
    try:
        counters = session.content.perfManager.perfCounter
    except vmodl.MethodFault:
        return {}
    named = {
        f"{counter.groupInfo.key}.{counter.nameInfo.key}.{counter.rollupType}": int(counter.key)
        for counter in counters
    }
    return {name: key for name, key in named.items() if name in wanted}


def read_counters(
    session: Session, ref: VmRef, ids: Mapping[str, int], seconds: float
) -> dict[str, dict[str, Series] | str]:
    """The last `seconds` of VM and host in one request: series by name, or why there are none.

    Counts back whole samples from now, so the first may start a little earlier. Errors are returned as a
    reason, since counters are not required for a measurement.
    """
    host = session.read(ref, ("runtime.host",)).values.get("runtime.host")
    asked: dict[str, tuple[Any, dict[str, int]]] = {
        of: (entity, {name: ids[name] for name in names if name in ids})
        for of, entity, names in (("vm", ref, OF_VM), ("host", host, OF_HOST))
        if entity is not None
    }
    specs = [
        vim.PerformanceManager.QuerySpec(
            entity=entity,
            intervalId=INTERVAL_S,
            maxSample=max(1, math.ceil(seconds / INTERVAL_S)),
            metricId=[
                vim.PerformanceManager.MetricId(counterId=one, instance="") for one in numbers.values()
            ],
        )
        for entity, numbers in asked.values()
        if numbers
    ]
    found: dict[str, dict[str, Series] | str] = dict.fromkeys(
        asked, "this vCenter has none of these counters"
    )
    try:
        answers = session.content.perfManager.QueryPerf(querySpec=specs) if specs else []
    except vmodl.MethodFault as fault:
        why = getattr(fault, "msg", None) or type(fault).__name__.rpartition(".")[2]
        return {**dict.fromkeys(asked, f"vCenter returned no counters: {why}"), "numa": NO_NUMA}
    for of, (entity, numbers) in asked.items():
        if numbers:
            mine = [answer for answer in answers if answer.entity == entity]
            series = _series(mine, {number: name for name, number in numbers.items()})
            found[of] = series or f"no sample: vSphere counts in steps of {INTERVAL_S} s"
    return {**found, "numa": NO_NUMA}


def read_waits(session: Session, ref: VmRef, vcpus: int) -> CpuWaits | str:
    """How long the VM's vCPUs waited in the last hour, or why that is unknown.

    For single VMs only: a vCenter's list of counters alone is some hundred kilobytes.
    """
    found = read_counters(session, ref, counter_ids(session), _KEPT_S)["vm"]
    if isinstance(found, str):
        return found
    ready, co_stop = (
        share_of_vcpu(found[name].mean, found[name].interval_s, vcpus) if name in found else None
        for name in (READY, CO_STOP)
    )
    return CpuWaits(ready, co_stop)


def _series(found: Sequence[Any], names: Mapping[int, str]) -> dict[str, Series]:
    """Samples of -1 mean "not collected"."""
    made = {}
    for entity in found:
        for item in entity.value:
            values = [value for value in item.value if value >= 0]
            name = names.get(int(item.id.counterId))
            if name and values:
                made[name] = Series(
                    UNITS[name], INTERVAL_S, len(values), sum(values) / len(values), float(max(values))
                )
    return made


UNITS = {
    READY: "ms",
    CO_STOP: "ms",
    "cpu.usage.average": "percent/100",
    "mem.usage.average": "percent/100",
    "mem.vmmemctl.average": "KB",
    "mem.swapped.average": "KB",
}
"""As vSphere documents them; percentages are in hundredths."""
