"""A check as data: one JSON document, which `--baseline` reads again, or a line of CSV for each finding."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_core import to_json

from vnuma import __version__
from vnuma.checks.against_design import DRIFT
from vnuma.checks.result import SCHEMA, CheckedVm, CheckResult, Judged, document
from vnuma.checks.rule import Severity
from vnuma.report.check.words import DRIFT_RULE, DriftRow, drift_rows
from vnuma.report.model.grid import csv_text

COLUMNS = (
    *("simulated", "vm", "path", "cluster", "host", "esxi", "shape", "memory_mb", "guest_nodes"),
    *("rule", "severity", "object_kind", "object", "arm", "title", "observed", "fix", "source"),
    *("superseded_by", "waived", "change", "assumed"),
)


def as_json(result: CheckResult) -> str:
    """The document as text. Python's own encoder takes three times as long when indenting."""
    return to_json({"schema": SCHEMA, "vnuma": __version__} | document(result), indent=2).decode() + "\n"


def as_csv(result: CheckResult) -> str:
    """A line for each finding on each VM, and for each VM that is not as designed."""
    known = {vm.key: vm for vm in result.vms}
    found = (_cells(vm, item) for vm in result.vms for item in vm.findings)
    drift = (_drift_cells(row, known.get(row.key)) for row in drift_rows(result.drift))
    return csv_text([COLUMNS, *([bool(result.simulated), *cells] for cells in (*found, *drift))])


def _drift_cells(row: DriftRow, vm: CheckedVm | None) -> Iterator[object]:
    yield from (row.name, row.path)
    yield from (vm.cluster, vm.host, vm.release, vm.shape, vm.memory_mb, vm.guest) if vm else ("",) * 6
    yield from (DRIFT, Severity.WARN.value, "vm", row.name, "", row.title, row.observed)
    yield from (DRIFT_RULE.fix, row.design, "", "", "", "")


def _cells(vm: CheckedVm, item: Judged) -> Iterator[object]:
    it = item.finding
    yield from (vm.name, vm.path, vm.cluster, vm.host, vm.release, vm.shape, vm.memory_mb, vm.guest)
    yield from (it.rule, it.severity.value, it.kind, it.name, it.arm, it.title)
    yield "; ".join(f"{name}: {value}" for name, value in it.observed.items())
    yield from (it.fix.text, it.source, it.superseded_by, item.waived, item.change or "")
    yield it.assumed
