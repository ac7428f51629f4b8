"""What `vnuma predict` writes: JSON and CSV with a line per row for programs, and the table of --sweep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vnuma.cli.screen import aligned, width
from vnuma.cli.shape_options import some
from vnuma.domain.topology.release import MOST_VCPUS
from vnuma.errors import UsageError
from vnuma.words.provenance import in_json

if TYPE_CHECKING:
    from vnuma.domain.topology.forecast import Forecast, Span
    from vnuma.domain.topology.vm_location import VmLocation
    from vnuma.domain.vm.setting import Value


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
    from vnuma.domain.topology.forecast import is_even
    from vnuma.report.model.grid import csv_text

    lines: list[Iterable[object]] = []
    for row in rows:
        found = _row(row)
        cells = {
            "simulated": bool(there.simulated),
            **{name: value for name, value in found.items() if name not in _NESTED},
            **{name: "+".join(map(str, found[name])) for name in _LISTED},
            "confidence": "" if row.impossible else found["confidence"],
            "even": is_even(row),
            "otherwise_cores": row.by_sql.otherwise,
        }
        lines += [cells.values()] if lines else [cells, cells.values()]
    return csv_text(lines)


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
        "sql_cpu_nodes": len(row.sql_node_sizes),
        "sql_cpu_nodes_online": row.sql_nodes_online,
        "usable_cores": row.usable_cores,
        "by_sql": asdict(row.by_sql),
        "by_windows": asdict(row.by_windows) if row.by_windows else None,
        "remote_mb": row.remote_mb,
        "hidden_host_nodes": row.hidden_nodes,
        "more_vcpus_than_cores": row.too_wide,
        "more_memory_than_host": row.too_large,
        "confidence": row.confidence,
        "sql_does_not_start": row.not_started or None,
        "share_of_node_memory": row.fullest or None,
        "beyond_hardware_version": row.not_allowed or None,
        "windows_splits_nodes": row.split or None,
        "does_not_power_on": row.stays_off or None,
    }


_SWEEP = re.compile(r"(?:vcpus=)?([1-9][0-9]{0,2})\.\.([1-9][0-9]{0,2})", re.ASCII)
_AUTOMATIC_SINCE = 20


def swept_sizes(text: str, cores_per_socket: int | None, hardware: int) -> list[dict[str, Value]]:
    """The shapes of `vcpus=4..128` as settings: each size that is a multiple of the cores per socket.

    Without cores per socket the host chooses: hardware version 20 and later has a setting for that; in older
    versions 1 core per socket means it. Raises UsageError.
    """
    match = _SWEEP.fullmatch(text.strip())
    first, last = map(int, match.groups()) if match else (1, 0)
    if not first <= last <= MOST_VCPUS:
        raise UsageError(
            f"--sweep {text} is not a range of vCPUs (the smaller number first, at most {MOST_VCPUS}).",
            fix="For example: --sweep vcpus=4..128",
        )
    per_socket = cores_per_socket or 1
    shape: dict[str, Value] = {
        "numCoresPerSocket": per_socket,
        "autoCoresPerSocket": cores_per_socket is None and hardware >= _AUTOMATIC_SINCE,
    }
    found = [{"numCPUs": count, **shape} for count in range(first, last + 1) if count % per_socket == 0]
    if not found:
        raise UsageError(
            f"--sweep {text}: {per_socket} cores per socket divide none of these sizes (rule T01).",
            fix="Use another range, or leave --cores-per-socket out.",
        )
    return found


def sweep_table(rows: Sequence[Forecast]) -> list[str]:
    """A line for each range of sizes; hosts with the same ranges share lines."""
    from vnuma.domain.topology.forecast import even_everywhere, ranges, spans_by_hosts

    found = spans_by_hosts(rows)
    header = ["vCPUs", "vNUMA nodes", "even sizes", "confidence", "memory"]
    lines = []
    for hosts, spans in found.items():
        if len(found) > 1:
            lines += [f"On {some(hosts)}:", ""]
        lines += [*aligned([header, *map(_line, spans)], width()), ""]
    if len(found) > 1:
        lines += [f"Even on every host: {ranges(even_everywhere(found.values())) or 'none'}", ""]
    return [
        *lines,
        "Even: every vNUMA node has the same number of vCPUs. Set that number as cores per socket.",
    ]


def _line(span: Span) -> list[str]:
    from vnuma.domain.topology.forecast import ranges

    even = "all" if span.even == span.vcpus else ranges(span.even) or "none"
    figures = [even, span.confidence] if span.fits else ["-", "-"]
    return [ranges(span.vcpus), span.nodes, *figures, span.memory]
