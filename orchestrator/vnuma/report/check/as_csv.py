"""A check as CSV: a line for each finding on each VM, and for each VM that is not as designed."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.checks.against_design import DRIFT
from vnuma.checks.result import CheckedVm, CheckResult, Judged
from vnuma.checks.rule import Severity
from vnuma.report.check.words import DRIFT_RULE, DriftRow, drift_rows
from vnuma.report.model.grid import csv_text

COLUMNS = (
    *("simulated", "vm", "path", "cluster", "host", "esxi", "shape", "memory_mb", "guest_nodes"),
    *("rule", "severity", "object_kind", "object", "arm", "title", "observed", "fix", "source"),
    *("superseded_by", "waived", "change", "assumed"),
)


def as_csv(result: CheckResult) -> str:
    """The file's text. VMs without findings have no line."""
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
