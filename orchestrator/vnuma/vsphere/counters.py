"""What vSphere counted while a boot was measured: real-time counters of the VM and of its host.

Real-time samples are 20 seconds each, and kept for about an hour. There is no public counter of a VM's
NUMA home node or locality: esxtop and vmware.log have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyVmomi import vim, vmodl

from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session

OF_VM = (
    "cpu.ready.summation",
    "cpu.costop.summation",
    "cpu.usage.average",
    "mem.vmmemctl.average",
    "mem.swapped.average",
)
OF_HOST = ("cpu.usage.average", "mem.usage.average")
INTERVAL_S = 20
NO_NUMA = "vSphere's API has no counter of NUMA home node or locality; esxtop and vmware.log have"


@dataclass(frozen=True)
class Series:
    """One counter over a boot's measurement, in the counter's own `unit` per sample of `interval_s`."""

    unit: str
    interval_s: int
    samples: int
    mean: float
    highest: float


def counter_ids(session: Session) -> dict[str, int]:
    """The numbers of our counters on this vCenter, by name; those that it does not have are left out."""
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
    """The last `seconds` of VM and host by vCenter's clock: by name, or why there is nothing.

    Nothing here decides a measurement: a vCenter that will not tell is a reason, not an error.
    """
    host = session.read(ref, ("runtime.host",)).values.get("runtime.host")
    return {
        "vm": _query(session, ref, {name: ids[name] for name in OF_VM if name in ids}, seconds),
        "host": "the host is not known"
        if host is None
        else _query(session, host, {name: ids[name] for name in OF_HOST if name in ids}, seconds),
        "numa": NO_NUMA,
    }


def _query(
    session: Session, entity: vim.ManagedEntity, ids: Mapping[str, int], seconds: float
) -> dict[str, Series] | str:
    if not ids:
        return "this vCenter shows none of these counters"
    now = vim.ServiceInstance("ServiceInstance", session.transport).CurrentTime()
    spec = vim.PerformanceManager.QuerySpec(
        entity=entity,
        intervalId=INTERVAL_S,
        startTime=now - timedelta(seconds=seconds),
        endTime=now,
        metricId=[vim.PerformanceManager.MetricId(counterId=number, instance="") for number in ids.values()],
    )
    try:
        found = session.content.perfManager.QueryPerf(querySpec=[spec])
    except vmodl.MethodFault as fault:
        return f"vCenter did not tell: {_words(fault)}"
    series = _series(found, {number: name for name, number in ids.items()})
    if series:
        return series
    return f"no sample: vSphere counts in steps of {INTERVAL_S} s, and the measurement took {seconds:.0f} s"


def _words(fault: vmodl.MethodFault) -> str:
    return str(getattr(fault, "msg", None) or type(fault).__name__.rpartition(".")[2])


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
    "cpu.ready.summation": "ms",
    "cpu.costop.summation": "ms",
    "cpu.usage.average": "percent/100",
    "mem.usage.average": "percent/100",
    "mem.vmmemctl.average": "KB",
    "mem.swapped.average": "KB",
}
"""As vSphere documents them; percentages are in hundredths."""
