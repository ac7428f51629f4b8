"""How long a VM's vCPUs waited for the host's CPUs, by vSphere's counters."""

from __future__ import annotations

from dataclasses import dataclass

READY_LIMIT = 0.05
CO_STOP_LIMIT = 0.03
"""Shares of a vCPU's time above which administrators look for contention (usual thresholds, not a
standard).
"""


@dataclass(frozen=True)
class CpuWaits:
    """The last hour's mean, as shares of one vCPU's time (0.05 is 5%); None: no sample."""

    ready: float | None
    """Ready to run while no CPU of the host was free."""
    co_stop: float | None
    """Stopped so that the VM's other vCPUs could catch up."""


def share_of_vcpu(milliseconds: float, interval_s: float, vcpus: int) -> float:
    """A VM's summation counter of an interval, over all vCPUs, as a share of one vCPU's time.

    https://knowledge.broadcom.com/external/article/387750/understanding-the-cpu-ready-values-in-th.html
    """
    return milliseconds / (1000 * interval_s * vcpus)
