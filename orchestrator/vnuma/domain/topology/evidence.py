"""Decide whether a vmware.log belongs to the boot being judged; only then is it evidence.

The test does not need synchronised clocks: ages are differences on one clock each, the log's on its host's,
the boot's on vCenter's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.vmware import VmwareLog

# The layout is decided just before vSphere shows the VM as on; reserving much memory takes longer.
_SLACK_S = 120.0

LOG_WORDS = "vmware.log:"
"""The start of the sentence about a log that was not evaluated."""


@dataclass(frozen=True)
class LogEvidence:
    """The vmware.log of a boot, or why it is not evaluated; `log` is then what was read, if anything."""

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
    """The log as evidence of a boot that is `boot_age_s` old, or why it is not.

    `host_time` is when it was read, by its host's clock; `earlier` the start (ISO 8601) of the previous
    boot's log. A log that contradicts the guest is rejected, since the guest is what is measured.
    """
    return LogEvidence(source, log, _not_of_boot(log, host_time, boot_age_s, earlier, guest))


def _not_of_boot(
    log: VmwareLog, host_time: datetime | None, boot_age_s: float, earlier: str | None, guest: GuestTopology
) -> str | None:
    if log.doubts:
        return f"it is in doubt: {'; '.join(log.doubts)}"
    if not log.tells_layout:
        return "it has no lines about vNUMA in a known form"
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
