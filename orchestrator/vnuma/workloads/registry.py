"""Every workload by its name: ours, registered here, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping

from vnuma.domain.workloads.kinds import installed
from vnuma.workloads.bench import Workload
from vnuma.workloads.call_volume import CallVolumeWorkload
from vnuma.workloads.cross_join import CrossJoinWorkload
from vnuma.workloads.scan_aggregate import ScanAggregateWorkload
from vnuma.workloads.sql_script import SqlScriptWorkload

WORKLOADS: Mapping[str, Workload] = {
    "cross_join": CrossJoinWorkload(),
    "scan_aggregate": ScanAggregateWorkload(),
    "sql_script": SqlScriptWorkload(),
    "call_volume": CallVolumeWorkload(),
}
"""Our own, by name."""


def workload_named(name: str) -> Workload:
    """The workload that a study names. A study is only read when there is one."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    found: Workload = installed()[name]
    return found
