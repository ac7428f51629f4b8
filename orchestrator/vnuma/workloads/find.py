"""Find a study's workload: one of ours, or of an installed package."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from vnuma.domain.workloads.kinds import KINDS, SHIPPED, installed
from vnuma.workloads.bench import MachineWorkload, Workload


def workload_named(name: str) -> Workload:
    """The workload of a valid study."""
    if name not in KINDS:
        found: Workload = installed(name)
        return found
    ours: Workload = import_module(f"{SHIPPED}.{name}.workload").WORKLOAD
    return ours


def machine_workload_named(name: str) -> MachineWorkload:
    """The same, for a study whose workload runs on a Linux machine."""
    return cast(MachineWorkload, workload_named(name))
