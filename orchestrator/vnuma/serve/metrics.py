"""The store in Prometheus' format, for dashboards and alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from vnuma.engine.run.progress import line_of
from vnuma.serve.reader import Reader
from vnuma.store import change_detection

__all__ = ["CONTENT_TYPE", "metrics"]

ORIGIN = ("simulated", "scenario")
"""Labels for what a figure was measured on."""


def metrics(reader: Reader) -> bytes:
    """All metrics. `simulated` is true or false; `scenario` is the lab's, and empty for real machines."""
    registry = CollectorRegistry()
    registry.register(_Store(reader))
    return generate_latest(registry)


class _Store(Collector):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def describe(self) -> Iterable[Metric]:
        """Empty, so that registering does not read the store."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read the store and yield its metrics."""
        view = self._reader.view()
        every = [one.run for one in view.runs] + [one.run for one in view.unreadable]
        runs = Counter((str(run.state), *_origin(run.simulated)) for run in every)
        yield _gauge("vnuma_runs", "Runs by state.", ("state", *ORIGIN), runs.items())
        with self._reader.store.read() as connection:
            cells = change_detection.cell_totals(connection)
            failures = change_detection.failure_totals(connection)
            findings = change_detection.finding_totals(connection)
        yield _gauge(
            "vnuma_cells",
            "Cells of all runs by state.",
            ("state", *ORIGIN),
            (((row.state, *_origin(row.simulated)), row.number) for row in cells),
        )
        yield _gauge(
            "vnuma_failures",
            "Attempts at cells that gave no result.",
            ("outcome", "reason", *ORIGIN),
            (((row.outcome, row.reason, *_origin(row.simulated)), row.number) for row in failures),
        )
        away = Counter((str(vm.in_use).lower(),) for vm in view.away)
        yield _gauge(
            "vnuma_vms_not_at_baseline",
            "VMs that are not at their baseline; in_use: their run is alive.",
            ("in_use",),
            ((key, away[key]) for key in (("true",), ("false",))),
        )
        yield _gauge(
            "vnuma_findings",
            "Findings of design rules that stand, and drift from a design, by the recorded checks.",
            ("source", "rule", "severity", *ORIGIN),
            (((row.source, row.rule, row.severity, *_origin(row.simulated)), row.number) for row in findings),
        )
        alive = [one for one in view.runs if line_of(one).alive]
        yield _gauge(
            "vnuma_run_seconds_left",
            "Estimated seconds to a living run's last cell.",
            ("run", *ORIGIN),
            (((o.run.name, *_origin(o.run.simulated)), o.left_s) for o in alive if o.left_s is not None),
        )
        read_at = [((), view.read_at.timestamp())]
        yield _gauge("vnuma_store_read_timestamp_seconds", "When the store was last read.", (), read_at)


def _origin(word: str | None) -> tuple[str, str]:
    return str(word is not None).lower(), word or ""


def _gauge(
    name: str, words: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words, labels=labels)
    for key, value in values:
        family.add_metric(key, value)
    return family
