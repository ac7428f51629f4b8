"""Does a vmware.log belong to the boot that is to be judged? Only then is it evidence.

The tests need no clocks that agree: ages are differences on one clock each, the log's on its host's,
the boot's on vCenter's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.vmware import VmwareLog

# The layout is decided moments before vSphere counts the VM as on; reserving much memory takes longer.
_SLACK_S = 120.0

LOG_WORDS = "vmware.log:"
"""How the sentence on a log that is not evaluated begins, among others of a boot."""


@dataclass(frozen=True)
class LogEvidence:
    """What vmware.log says of a boot, or why it says nothing: then `log` is what was read, if anything."""

    source: str | None = None
    log: VmwareLog | None = None
    why_not: str | None = None

    @property
    def evaluated(self) -> VmwareLog | None:
        """The log, if it is evidence of this boot."""
        return self.log if self.why_not is None else None


def evidence_of_boot(
    log: VmwareLog,
    *,
    source: str,
    host_time: datetime | None,
    boot_age_s: float,
    earlier: str | None,
    guest: GuestTopology,
) -> LogEvidence:
    """The log as evidence of a boot that is `boot_age_s` old, or why it is none.

    `host_time` is when it was read, by its host's clock; `earlier` the beginning (ISO 8601) of the log of
    the boot before. A log that contradicts the guest is not believed: the guest is what is measured.
    """
    return LogEvidence(source, log, _not_of_boot(log, host_time, boot_age_s, earlier, guest))


def _not_of_boot(
    log: VmwareLog, host_time: datetime | None, boot_age_s: float, earlier: str | None, guest: GuestTopology
) -> str | None:
    if not log.tells_layout:
        return "it has no lines about vNUMA in a known form"
    if log.doubts:
        return f"it contradicts itself: {'; '.join(log.doubts)}"
    at = log.numa_at or log.began
    if at is None or host_time is None:
        return "its lines have no times, so it may belong to any boot"
    if log.began is not None and log.began.isoformat() == earlier:
        return "it is still the log of the previous boot"
    ahead = (host_time - at).total_seconds() - boot_age_s
    if ahead > _SLACK_S:
        return f"it was written {ahead:,.0f} s before this boot"
    behind = boot_age_s - (host_time - (log.began or at)).total_seconds()
    if behind > _SLACK_S:
        return f"it starts {behind:,.0f} s after this boot"
    if log.vcpus is not None and log.vcpus != guest.vcpus:
        return f"it shows {log.vcpus} vCPUs, the guest has {guest.vcpus}"
    if log.vpds != guest.numa_nodes:
        return f"it shows {log.vpds} vNUMA nodes, the guest shows {guest.numa_nodes}"
    return None
