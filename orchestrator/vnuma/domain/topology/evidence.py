"""Decide whether a vmware.log belongs to the boot being judged; only then is it evidence.

The test does not need synchronised clocks: ages are differences on one clock each, the log's on its host's,
the boot's on vCenter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs.kinds import Reading
from vnuma.logs.vmware import VmwareLog
from vnuma.words.plain_text import counted

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


_Figures = Mapping[str, Any]


def conclusion(reading: Reading) -> str:
    """The sentence on a text of a known kind."""
    words = _KINDS.get(reading.kind)
    return words(reading.figures) if words else f"It is {reading.kind}, without a layout of nodes."


def sizes_words(sizes: Sequence[int], what: str, count: int | None = None) -> str:
    """`2 vNUMA nodes of 8`, or only their number if the sizes are unknown."""
    number = counted(count if count is not None else len(sizes), what)
    if not sizes:
        return number
    return f"{number} of {sizes[0] if len(set(sizes)) == 1 else '+'.join(map(str, sizes))}"


def _vmware(figures: _Figures) -> str:
    """Of one VM; with others in the text its name comes first."""
    earlier, others = figures.get("earlier_power_ons", ()), figures.get("other_vms", ())
    name = figures.get("settings", {}).get("displayname", "The first VM")
    words = f"{name}: " * bool(others) + _power_on(figures)
    if earlier:
        whose = "" if figures.get("settings", {}).get("displayname") else ", maybe of another VM"
        nodes = "; ".join(map(_earlier, earlier))
        words += f" The text has earlier power-ons{whose}, which do not count ({nodes})."
    if others:
        words += (
            f" Other VMs in the text, told apart by displayName: {', '.join(filter(None, others)) or 'one'}."
        )
    return words


def _earlier(power_on: _Figures) -> str:
    vpds, began = power_on["vpds"], power_on["began"]
    at = f" at {began:%Y-%m-%d %H:%M}" if began else ""
    return f"{counted(vpds, 'vNUMA node') if vpds else 'no layout'}{at}"


def _power_on(figures: _Figures) -> str:
    vpds, vcpus = figures.get("vpds"), figures.get("vcpus")
    if vpds is None:
        return _no_layout(figures)
    nodes = sizes_words(figures.get("vpd_sizes", ()), "vNUMA node", vpds)
    subject = f"This power-on gave the {vcpus} vCPUs" if vcpus else "This power-on gave the VM"
    if figures.get("forced_uma"):
        return f"{subject} {nodes}: CPU hot-add hides the host's nodes. ESXi says so itself."
    ppds = figures.get("ppds")
    where = f", on {counted(ppds, 'NUMA node')} of the host" if ppds else ""
    return f"{subject} {nodes}{where}. {_sure(figures)}"


def _no_layout(figures: _Figures) -> str:
    """What a log without a number of nodes says, and what it would take."""
    if not figures.get("lines"):
        return "The log has the VM's configuration, but no line about vNUMA: the layout is not known."
    parts = ["The log's lines about vNUMA do not give the layout", *figures.get("doubts", ())]
    if figures.get("invalid_cookie"):
        parts.append(
            "ESXi finds the stored sizing (numa.autosize.cookie) invalid, as of an earlier shape; "
            "without the two numa.autosize keys it sizes anew"
        )
    return f"{'. '.join(part[0].upper() + part[1:] for part in parts)}."


def _sure(figures: _Figures) -> str:
    if figures.get("doubts"):
        return f"Not sure: {'; '.join(figures['doubts'])}."
    if not figures.get("has_total"):
        return "Not sure: the log has no total, only lines of vCPUs."
    if figures.get("vpd_sizes"):
        agree = "the line of each vCPU agrees with the total."
        unnamed = figures.get("earlier_power_ons") and "displayname" not in figures.get("settings", {})
        return f"T{agree[1:]}" if unnamed or figures.get("other_vms") else f"Sure: {agree}"
    return "Only the total says so: the log has no line for each vCPU."


def _machine(figures: _Figures) -> str:
    """Of a guest or a physical machine: these tools run in both."""
    sizes, count = figures.get("node_sizes", ()), figures.get("numa_nodes")
    doubts = f" Not sure: {'; '.join(figures['doubts'])}." if figures.get("doubts") else ""
    if count is None:
        return f"The machine's NUMA nodes are not shown.{doubts}"
    sockets = figures.get("sockets")
    in_sockets = f" and {counted(sockets, 'socket')}" if sockets else ""
    cpus = " CPUs" if sizes else ""
    seen = f"The machine has {sizes_words(sizes, 'NUMA node', count)}{cpus}{in_sockets}"
    return f"{seen}.{doubts}" if doubts else f"{seen}: its own tool says so."


def _errorlog(figures: _Figures) -> str:
    total, using, nodes = figures.get("total"), figures.get("using"), figures.get("node_cpus", ())
    parts = []
    if total is not None and using is not None:
        limited = using < total
        used = f"{using} of" if limited else "all"
        why = ": its licence allows no more" if limited else ""
        parts.append(f"SQL Server uses {used} {counted(total, 'logical processor')}{why}")
    elif figures.get("sockets"):
        parts.append(f"SQL Server found {counted(figures['sockets'], 'socket')}")
    elif total is not None:
        parts.append(f"SQL Server found {counted(total, 'logical processor')}")
    if nodes:
        soft = "soft-NUMA may have split the guest's nodes"
        parts.append(f"it has {sizes_words(nodes, 'SQLOS node')} CPUs ({soft})")
    words = "; ".join(parts) or "SQL Server's nodes and processors are not shown"
    return (
        f"{words[0].upper()}{words[1:]}. This is what the server itself wrote at its start.{_limits(figures)}"
    )


def _limits(figures: _Figures) -> str:
    """What stands against an error log's figures, a sentence each."""
    found = [f"Not sure: {doubt}." for doubt in figures.get("doubts", ())]
    if figures.get("translated"):
        found.append(
            "The log is in another language than English: its masks and machine are read, no processors."
        )
    if figures.get("earlier_starts"):
        found.append(
            f"The text has earlier starts, which do not count ({', '.join(figures['earlier_starts'])})."
        )
    return "".join(f" {sentence}" for sentence in found)


def _clients(figures: _Figures) -> str:
    rows = figures["rows"]
    groups = {row["group_id"] for row in rows}
    split = [group for group in groups if sum(row["group_id"] == group for row in rows) > 1]
    remote = sum((row.get("remote_kb") or 0) > 0 for row in rows)
    return (
        f"{counted(len(groups), 'VM')} on this host, {len(split) or 'none'} of them spread over several "
        f"NUMA clients; {counted(remote, 'client')} with remote memory at that moment."
    )


def _esxtop(figures: _Figures) -> str:
    vms = figures.get("vms", ())
    local = [vm["n_pct_l"] for vm in vms if vm.get("n_pct_l") is not None]
    if not local:
        return f"{counted(len(vms), 'VM')}; the screen has no N%L, so locality is not known."
    low = sum(percent < _ALL for percent in local)
    words = f"{low} with less than all memory local" if low else "all memory local"
    return f"{counted(len(local), 'VM')}, {words}; the lowest N%L is {min(local)}."


_ALL = 100


def _host(figures: _Figures) -> str:
    packages, nodes = figures.get("packages"), figures.get("numa_nodes")
    if packages is None or nodes is None:
        shown = counted(packages, "processor package") if packages else counted(nodes or 0, "NUMA node")
        return f"The host has {shown}; its {'NUMA nodes' if packages else 'packages'} are not shown."
    each = "one for each" if packages == nodes else "not one for each"
    return f"The host has {counted(packages, 'processor package')} and {counted(nodes, 'NUMA node')}: {each}."


def _cnodes(figures: _Figures) -> str:
    rows = figures["rows"]
    spread = {(row["group_id"], row["client_id"]) for row in rows if 0 < (row.get("memory_pct") or 0) < _ALL}
    clients = {(row["group_id"], row["client_id"]) for row in rows}
    return f"{counted(len(clients), 'NUMA client')}, {len(spread)} with memory on more than one host node."


def _pnodes(figures: _Figures) -> str:
    return f"The host has {counted(len(figures['rows']), 'NUMA node')}."


_KINDS: Mapping[str, Callable[[_Figures], str]] = {
    "vmware.log": _vmware,
    "sched-stats -t numa-clients": _clients,
    "sched-stats -t numa-cnode": _cnodes,
    "sched-stats -t numa-pnode": _pnodes,
    **dict.fromkeys(("esxtop, memory", "esxtop, batch"), _esxtop),
    **dict.fromkeys(("vsish", "sched-stats -t ncpus", "esxcli hardware"), _host),
    **dict.fromkeys(("Coreinfo", "lscpu", "numactl -H", "lstopo"), _machine),
    "SQL Server error log": _errorlog,
}
