"""How long a cell takes, before one was measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vnuma.domain.study.study import Study

# From power-off to a quiet SQL Server on real hardware; replaced by what is measured after block 1.
ASSUMED_BOOT_S = 300.0

# Of a pass over a machine beside its reads: connecting, dropping the caches, reading the file in.
ASSUMED_PASS_S = 5.0


def assumed_cell_seconds(study: Study) -> float:
    """How long a boot, or a pass over a machine, takes on real hardware, before anything was measured."""
    executions = study.design.warmups + study.design.iterations
    return assumed_boot_seconds(study) + assumed_iteration_seconds(study) * executions


def assumed_boot_seconds(study: Study) -> float:
    """Of it, what comes before the first iteration."""
    return ASSUMED_PASS_S if study.workload.replicate == "pass" else ASSUMED_BOOT_S + study.quiet.for_s


def assumed_iteration_seconds(study: Study) -> float:
    """Of it, one pass over all sizes and forms."""
    workload = study.workload
    return sum(workload.assumed_seconds(size, form) for size in workload.sizes for form in workload.forms)


def seconds_in_all(vms: Iterable[tuple[str, float]], *, take_turns: bool) -> float:
    """How long VMs take together, each given by its host and its own seconds.

    Hosts work side by side; the VMs of one host take turns, unless the study measures neighbours together.
    """
    hosts: dict[str, list[float]] = defaultdict(list)
    for host, seconds in vms:
        hosts[host].append(seconds)
    return max((sum(own) if take_turns else max(own) for own in hosts.values()), default=0.0)
