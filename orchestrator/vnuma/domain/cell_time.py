"""How long a cell takes, before one was measured."""

from __future__ import annotations

from vnuma.domain.study import Study

# From power-off to a quiet SQL Server on real hardware; replaced by what is measured after block 1.
ASSUMED_BOOT_S = 300.0


def assumed_cell_seconds(study: Study) -> float:
    """How long one cell takes on real hardware, before anything was measured."""
    workload, executions = study.workload, study.design.warmups + study.design.iterations
    once = sum(workload.assumed_seconds(size, form) for size in workload.sizes for form in workload.forms)
    return ASSUMED_BOOT_S + study.quiet.for_s + once * executions
