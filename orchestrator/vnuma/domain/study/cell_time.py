"""The expected duration of a cell, before one was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from vnuma.domain.study.study import Study

# From power-off to a quiet SQL Server on real hardware; replaced by measured times after block 1.
ASSUMED_BOOT_S = 300.0

# A machine's pass besides its reads: connecting, dropping caches, reading the file in.
ASSUMED_PASS_S = 5.0


def assumed_cell_seconds(study: Study) -> float:
    """The assumed duration of a boot, or of a pass over a machine, on real hardware."""
    executions = study.design.warmups + study.design.iterations
    return assumed_boot_seconds(study) + assumed_iteration_seconds(study) * executions


def assumed_boot_seconds(study: Study) -> float:
    """The part of it before the first iteration."""
    return ASSUMED_PASS_S if study.replicate == "pass" else ASSUMED_BOOT_S + study.quiet.for_s


def assumed_iteration_seconds(study: Study) -> float:
    """The part of it for one pass over all sizes and forms."""
    workload = study.workload
    return sum(workload.assumed_seconds(size, form) for size in workload.sizes for form in workload.forms)


def assumed_seconds_without(study: Study, size: int) -> float:
    """The assumed duration of a boot that does not measure that size."""
    workload = study.workload
    each = sum(workload.assumed_seconds(size, form) for form in workload.forms)
    return assumed_cell_seconds(study) - each * (study.design.warmups + study.design.iterations)


def seconds_in_all(vms: Iterable[tuple[Hashable, float]], *, take_turns: bool) -> float:
    """The total duration for VMs, each given by its host and its own seconds.

    Hosts work in parallel; the VMs of one host take turns, unless the study measures neighbours together.
    """
    hosts: dict[Hashable, list[float]] = defaultdict(list)
    for host, seconds in vms:
        hosts[host].append(seconds)
    return max((sum(own) if take_turns else max(own) for own in hosts.values()), default=0.0)
