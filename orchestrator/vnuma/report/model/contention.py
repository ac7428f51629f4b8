"""Whether the host had CPU time for the VM while measuring: vSphere's CPU ready and co-stop by boot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vnuma.domain.vm.cpu_waits import CO_STOP_LIMIT, READY_LIMIT, share_of_vcpu
from vnuma.domain.vm.plain_text import counted
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm

READY = "cpu.ready.summation"
CO_STOP = "cpu.costop.summation"


@dataclass(frozen=True)
class Contention:
    """The highest 20 seconds of any boot, as shares of one vCPU's time; `boots` had a sample."""

    boots: int
    ready: float
    co_stop: float | None
    """None where vSphere has no such counter."""

    @property
    def contended(self) -> bool:
        """Whether either exceeds its usual threshold."""
        return self.ready > READY_LIMIT or (self.co_stop or 0.0) > CO_STOP_LIMIT

    @property
    def words(self) -> str:
        """As in "CPU ready at most 0.4% of a vCPU's time, co-stop at most 0.0%, in any 20 s (48 boots)"."""
        co_stop = "not known" if self.co_stop is None else f"at most {self.co_stop * 100:.1f}%"
        return (
            f"CPU ready at most {self.ready * 100:.1f}% of a vCPU's time, co-stop {co_stop}, in any 20 s "
            f"({counted(self.boots, 'boot')})"
        )


def contention(loaded: LoadedRun, vm: Vm) -> Contention | str:
    """Over every boot of a VM, or why it is unknown."""
    boots = loaded.attempt_facts(vm, "counters", "vm").values()
    seen = [boot for boot in boots if isinstance(boot, Mapping) and READY in boot]
    if not seen:
        reasons = [str(boot["not_evaluated"]) for boot in boots if "not_evaluated" in boot]
        return reasons[-1] if reasons else "vSphere's counters were not read"
    vcpus = loaded.study.vcpus or 1  # only machines have none, and vSphere has no counters for them
    stopped = [_share(boot[CO_STOP], vcpus) for boot in seen if CO_STOP in boot]
    ready = max(_share(boot[READY], vcpus) for boot in seen)
    return Contention(len(seen), ready, max(stopped, default=None))


def _share(series: Mapping[str, Any], vcpus: int) -> float:
    """The highest sample's milliseconds of all vCPUs, as a share of one vCPU's time."""
    return share_of_vcpu(float(series["highest"]), float(series["interval_s"]), vcpus)
