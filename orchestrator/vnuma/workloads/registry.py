"""Every workload by its name: ours, registered here, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from vnuma.domain.workloads.kinds import installed
from vnuma.workloads.bench import MachineWorkload, Workload
from vnuma.workloads.call_volume import CallVolumeWorkload
from vnuma.workloads.cross_join import CrossJoinWorkload
from vnuma.workloads.log_spinlock import LogSpinlockWorkload
from vnuma.workloads.page_cache import PageCacheWorkload
from vnuma.workloads.reporting_streams import ReportingStreamsWorkload
from vnuma.workloads.scan_aggregate import ScanAggregateWorkload
from vnuma.workloads.sql_script import SqlScriptWorkload

WORKLOADS: Mapping[str, Workload] = {
    "cross_join": CrossJoinWorkload(),
    "log_spinlock": LogSpinlockWorkload(),
    "page_cache": PageCacheWorkload(),
    "scan_aggregate": ScanAggregateWorkload(),
    "reporting_streams": ReportingStreamsWorkload(),
    "sql_script": SqlScriptWorkload(),
    "call_volume": CallVolumeWorkload(),
}
"""Our own, by name."""


def workload_named(name: str) -> Workload:
    """The workload that a study names. A study is only read when there is one."""
    if name in WORKLOADS:
        return WORKLOADS[name]
    found: Workload = installed(name)
    return found


def machine_workload_named(name: str) -> MachineWorkload:
    """The same, for a study whose workload runs on a Linux machine."""
    return cast(MachineWorkload, workload_named(name))
