"""What `vnuma predict` writes for programs: complete JSON, or CSV with a line per row."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vnuma.domain.vm.plain_text import spreadsheet_safe
from vnuma.domain.vm.provenance import in_json

if TYPE_CHECKING:
    from vnuma.domain.topology.forecast import Forecast
    from vnuma.domain.topology.vm_location import VmLocation

_LISTED = ("hosts", "node_sizes", "clients", "alternatives")
_NESTED = ("by_sql", "by_windows")


def document(rows: Sequence[Forecast], there: VmLocation) -> dict[str, Any]:
    """The prediction as a JSON object, `vnuma/predict/1`."""
    return {
        "schema": "vnuma/predict/1",
        **in_json(there.simulated),
        "vm": there.vm.name if there.vm else None,
        "hosts_not_read": list(there.unread),
        "rows": [_row(row) for row in rows],
    }


def as_csv(rows: Sequence[Forecast], there: VmLocation) -> str:
    """A line for each row of the JSON, lists as `18+12`; empty cells are unknown.

    `even` says whether every vNUMA node has the same number of vCPUs; it is false if the host has too few
    cores. `otherwise_cores` is the other reading of the edition's limit.
    """
    from vnuma.domain.topology.sizes import is_even

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, row in enumerate(rows):
        found = _row(row)
        cells = {
            "simulated": "true" if there.simulated else "false",
            **{name: value for name, value in found.items() if name not in _NESTED},
            **{name: "+".join(map(str, found[name])) for name in _LISTED},
            "confidence": "" if row.too_wide else found["confidence"],
            "even": "true" if is_even(row) else "false",
            "otherwise_cores": row.by_sql.otherwise,
        }
        if number == 0:
            writer.writerow(cells)
        writer.writerow(_cell(value) for value in cells.values())
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return spreadsheet_safe(value) if isinstance(value, str) else value


def _row(row: Forecast) -> dict[str, Any]:
    """One row: everything known, unrounded."""
    return {
        "vcpus": sum(row.prediction.node_sizes),
        "topology": str(row.topology),
        "hosts": list(row.hosts),
        "esxi": row.release,
        "vnuma_nodes": row.prediction.vnuma_nodes,
        "node_sizes": list(row.prediction.node_sizes),
        "clients": list(row.prediction.clients),
        "alternatives": list(row.prediction.alternatives),
        "because": row.prediction.because,
        "sql_memory_nodes": row.prediction.vnuma_nodes,
        "sql_cpu_nodes": row.sql_cpu_nodes,
        "sql_cpu_nodes_online": row.sql_cpu_nodes_online,
        "usable_cores": row.usable_cores,
        "by_sql": asdict(row.by_sql),
        "by_windows": asdict(row.by_windows) if row.by_windows else None,
        "remote_mb": row.remote_mb,
        "hidden_host_nodes": row.hidden_nodes,
        "more_vcpus_than_cores": row.too_wide,
        "more_memory_than_host": row.too_large,
        "confidence": row.confidence,
    }
