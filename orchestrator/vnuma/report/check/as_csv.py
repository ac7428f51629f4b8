"""A check as CSV: a line for each finding on each VM, and for each VM that is not as designed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from vnuma.checks.against_design import DRIFT
from vnuma.checks.finding import Severity
from vnuma.checks.result import CheckedVm, CheckResult, Judged
from vnuma.domain.vm.plain_text import spreadsheet_safe
from vnuma.report.check.words import DRIFT_RULE, DriftRow, drift_rows

COLUMNS = (
    *("simulated", "vm", "path", "cluster", "host", "esxi", "shape", "memory_mb", "guest_nodes"),
    *("rule", "severity", "object_kind", "object", "arm", "title", "observed", "fix", "source"),
    *("superseded_by", "waived", "change"),
)


def as_csv(result: CheckResult) -> str:
    """The file's text. VMs without findings have no line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for vm in result.vms:
        for item in vm.findings:
            cells = _cells(result, vm, item)
            writer.writerow(spreadsheet_safe(cell) if isinstance(cell, str) else cell for cell in cells)
    known = {vm.key: vm for vm in result.vms}
    for row in drift_rows(result.drift):
        cells = _drift_cells(result, row, known.get(row.key))
        writer.writerow(spreadsheet_safe(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue()


def _drift_cells(result: CheckResult, row: DriftRow, vm: CheckedVm | None) -> Iterator[object]:
    yield "true" if result.simulated else "false"
    yield from (row.name, row.path)
    yield from (vm.cluster, vm.host, vm.release, vm.shape, vm.memory_mb, vm.guest) if vm else ("",) * 6
    yield from (DRIFT, Severity.WARN.value, "vm", row.name, "", row.title, row.observed)
    yield from (DRIFT_RULE.fix, row.design, "", "", "")


def _cells(result: CheckResult, vm: CheckedVm, item: Judged) -> Iterator[object]:
    it = item.finding
    yield "true" if result.simulated else "false"
    yield from (vm.name, vm.path, vm.cluster, vm.host, vm.release, vm.shape, vm.memory_mb, vm.guest)
    yield from (it.rule, it.severity.value, it.kind, it.name, it.arm, it.title)
    yield "; ".join(f"{name}: {value}" for name, value in it.observed.items())
    yield from (it.fix.text, it.source, it.superseded_by, item.waived, item.change or "")
