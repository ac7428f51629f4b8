"""A reading holds what its workload declares: its metric, and no figure that nothing would show."""

from __future__ import annotations

from vnuma.domain.workloads.settings import WorkloadSettings
from vnuma.errors import MeasurementFailed
from vnuma.workloads.bench import Reading


def require_declared(reading: Reading, settings: WorkloadSettings, form: str) -> None:
    """Raises MeasurementFailed for a reading without its metric, and for figures under other names."""
    metric = settings.metric(form)
    if metric.source == "value" and reading.value is None:
        raise MeasurementFailed(f"The workload {settings.name} returned no {metric.name} ({metric.unit}).")
    known = [figure.name for figure in settings.figures]
    others = [name for name in reading.figures or () if name not in known]
    if others:
        raise MeasurementFailed(
            f"The workload {settings.name} returned figures that it does not declare: {', '.join(others)}.",
            fix=f"Its settings declare {', '.join(known) or 'none'}.",
        )
