"""`vnuma predict`: the topology that guest and SQL Server will see, before anything is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vnuma.cli.screen import WIDEST, aligned, say, width, write_out
from vnuma.cli.shape_options import LookAhead, some, where
from vnuma.domain.topology.forecast import (
    Forecast,
    Span,
    even_everywhere,
    forecast_on,
    is_even,
    ranges,
    spans_by_hosts,
)
from vnuma.domain.topology.release import MOST_VCPUS
from vnuma.domain.topology.topology import partial_socket, topologies
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.setting import Value, named_settings
from vnuma.errors import InputError, UsageError
from vnuma.report.model.grid import csv_text
from vnuma.words.plain_text import filled, gigabytes
from vnuma.words.provenance import banner, in_json

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
    even = "all" if span.even == span.vcpus else ranges(span.even) or "none"
    figures = [even, span.confidence] if span.fits else ["-", "-"]
    return [ranges(span.vcpus), span.nodes, *figures, span.memory]


def predict(
    asked: LookAhead,
    *,
    cores_per_socket: Annotated[
        int | None,
        typer.Option(min=1, help="One shape; by default, every shape with these vCPUs."),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="vcpus=A..B",
            help="Every VM size in a range: where the number of nodes changes, which sizes are even.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the VM: a numa.* key, coresPerNumaNode, cpuHotAddEnabled and so on.",
        ),
    ] = None,
    soft_numa: Annotated[
        bool,
        typer.Option("--soft-numa/--no-soft-numa", help="Automatic soft-NUMA (SQL Server 2016 or later)."),
    ] = True,
    format_: Annotated[
        Literal["text", "json", "csv", "svg", "png"],
        typer.Option("--format", help="text, json, csv; svg and png draw --sweep or one shape."),
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; standard output by default.")
    ] = None,
) -> None:
    """Predict what the guest will see: vNUMA nodes, SQL Server's nodes, the cores that editions use.

    Each prediction has a confidence; where documents disagree, the other readings are shown.

    Examples: vnuma predict --vcpus 16 --memory 64 --host-nodes 2x16/96 --esxi 6.0;
    vnuma predict --vcpus 30 --memory 512 --host-nodes 2x20/384@7.0 --host-nodes 4x14/256@7.0;
    vnuma predict --vm sql16 --snapshot estate.json;
    vnuma predict --sweep vcpus=4..128 --memory 256 --host-nodes 2x32/512@8.0;
    vnuma predict --sweep vcpus=4..128 --memory 256 --cluster SQL-PROD --format svg -o good-sizes.svg;
    vnuma predict --vcpus 16 --cores-per-socket 8 --memory 256 --host-nodes 2x20/384 --format png -o vm.png
    """
    there = asked.location()
    _refuse_contradictions(asked, sweep, format_, output)
    one_shape = cores_per_socket or (there.vm is not None and asked.vcpus is None)
    if format_ in ("svg", "png") and not (sweep or one_shape):
        raise UsageError(
            f"--format {format_} is a picture of one shape, or of many VM sizes.",
            fix="Name the shape (--cores-per-socket 8) or the sizes (--sweep vcpus=4..128).",
        )
    version, guest = asked.hardware_version(there), asked.guest(soft_numa=soft_numa)
    swept = swept_sizes(sweep, cores_per_socket, version) if sweep else []
    count, memory_mb = asked.size(there, 1 if swept else None)
    own = there.vm.settings if there.vm else {}
    size: dict[str, Value] = {"numCPUs": count, "memoryMB": memory_mb}
    shapes = swept or ([{}] if one_shape and not cores_per_socket else _shapes(count, cores_per_socket))
    given = named_settings(set_ or ())
    wanted = [{**own, **size, **shape, **given} for shape in shapes]
    _require_whole_sockets(wanted, there.vm.name if there.vm else "")
    seen = (forecast_on(settings, version, there.hosts, guest, there.unseen) for settings in wanted)
    rows = list(dict.fromkeys(row for rows in seen for row in rows))  # automatic shapes are all one
    named = f"{there.vm.name}: " if there.vm else ""
    many = f"{swept[0]['numCPUs']} to {swept[-1]['numCPUs']}" if swept else count
    head = f"{named}{many} vCPUs, {gigabytes(memory_mb)}, hardware version {version}"
    runs = f"SQL Server {asked.sql} {asked.edition}{f', {guest.windows}' if guest.windows else ''}"
    writers: dict[str, Callable[[], str | bytes]] = {
        "json": lambda: json.dumps(document(rows, there), indent=2) + "\n",
        "csv": lambda: as_csv(rows, there),
        "svg": lambda: _picture(rows, there, memory_mb, sweeps=f"{head}; {runs}" if swept else ""),
        "png": lambda: _as_png(writers["svg"]()),
    }
    if format_ in writers:
        write_out(writers[format_](), output, "The prediction")
    else:
        simulated = [banner(there.simulated)] if there.simulated else []
        lines = sweep_table(rows) if swept else _table(rows)
        say("\n".join([*simulated, f"{head}, on {where(there)}\n{runs}\n", *lines]))
    if not swept:
        _refuse_impossible(rows, max(host.threads for host in there.hosts))


def _refuse_contradictions(asked: LookAhead, sweep: str | None, format_: str, output: Path | None) -> None:
    if sweep and asked.vcpus:
        raise UsageError("--sweep and --vcpus both set the number of vCPUs.", fix="Leave one of them out.")
    if format_ == "png" and output is None:
        raise UsageError("--format png needs a file.", fix="Name it: -o vm.png")
    if output is not None and format_ == "text":
        raise UsageError(f"{output} needs a format.", fix="Add --format json, csv, svg or png.")


def _require_whole_sockets(wanted: list[dict[str, Value]], vm: str) -> None:
    """Raise InputError for an existing VM with a shape that does not power on."""
    for why in filter(None, map(partial_socket, wanted)):
        raise InputError(
            f"{vm or 'No prediction'}: {why}.",
            fix="Name a shape: --cores-per-socket N, or --vcpus N for every shape of that size.",
        )


def _refuse_impossible(rows: Iterable[Forecast], threads: int) -> None:
    """Raise InputError for a VM that powers on in no shape, on hosts of at most that many logical CPUs."""
    too_many = f"its vCPUs are more than the {threads} logical CPUs of a host"
    whys = [
        row.not_allowed or row.stays_off or (too_many if row.topology.vcpus > threads else "") for row in rows
    ]
    if all(whys):
        raise InputError(f"This VM cannot run: {whys[0]}.", fix="Change its size, or name a larger host.")


def _picture(rows: list[Forecast], there: VmLocation, memory_mb: int, sweeps: str) -> str:
    """Many sizes under the conditions `sweeps`, else one shape on the first host."""
    from vnuma.domain.topology.picture import topology_svg
    from vnuma.report.charts.size_chart import sizes_svg

    unread = f"; not read: {', '.join(there.unread)}" if there.unread else ""
    simulated = banner(there.simulated) if there.simulated else ""
    if sweeps:
        return sizes_svg(rows, "Good VM sizes on these hosts", f"{sweeps}{unread}", simulated)
    return topology_svg(rows[0], there.hosts[0], memory_mb, simulated=simulated)


def _as_png(svg: str | bytes) -> bytes:
    from vnuma.report.charts.svg import svg_as_png

    return svg_as_png(str(svg))


def _shapes(vcpus: int, cores_per_socket: int | None) -> list[dict[str, Value]]:
    """The shapes of that many vCPUs; only one with `cores_per_socket`. Raises UsageError."""
    whole = [shape.cores_per_socket for shape in topologies(vcpus)]
    if cores_per_socket and vcpus % cores_per_socket:
        raise UsageError(
            f"{cores_per_socket} cores per socket do not divide {vcpus} vCPUs (rule T01).",
            fix=f"Use one of {' '.join(map(str, whole))}.",
        )
    wanted = [cores_per_socket] if cores_per_socket else whole
    return [{"numCoresPerSocket": cores, "autoCoresPerSocket": False} for cores in wanted]


def _table(rows: list[Forecast]) -> list[str]:
    unlike = len({row.hosts for row in rows}) > 1
    header = ["Shape", "vNUMA nodes", "confidence", "SQL memory/CPU nodes", "cores used", "memory"]
    body = [
        [
            str(row.topology),
            f"{row.prediction.vnuma_nodes} ({sizes(row.prediction.node_sizes)})",
            _sure(row),
            _sql_nodes(row),
            _cores(row),
            _memory(row),
            *([some(row.hosts)] if unlike else []),
        ]
        for row in rows
    ]
    lines = aligned([[*header, *(["host"] if unlike else [])], *body], width())
    return [*lines, "", *_why(rows)]


def sizes(nodes: tuple[int, ...]) -> str:
    """The sizes of nodes in short form: 2 x 8, or 18+12."""
    return f"{len(nodes)} x {nodes[0]}" if len(set(nodes)) == 1 else "+".join(map(str, nodes))


def _sure(row: Forecast) -> str:
    others = "".join(f", else {count}" for count in row.prediction.alternatives)
    return row.prediction.confidence + others


def _sql_nodes(row: Forecast) -> str:
    online = row.sql_nodes_online
    unused = f", {online} online" if online < len(row.sql_node_sizes) else ""
    return f"{row.prediction.vnuma_nodes}/{len(row.sql_node_sizes)}{unused}"


def _cores(row: Forecast) -> str:
    """The cores that Windows and SQL Server use, out of all; with the other reading if there is one."""
    otherwise = f", else {row.by_sql.otherwise}" if row.by_sql.otherwise else ""
    return f"{row.usable_cores} of {row.topology.vcpus}{otherwise}"


def _memory(row: Forecast) -> str:
    if row.stays_off:
        return "does not power on"
    if row.not_allowed:
        return "more than its hardware version"
    if row.too_wide:
        return "more vCPUs than cores"
    if row.too_large:
        return "more than the host has"
    if row.remote_mb is None:
        return "not known"
    if row.remote:
        return f"{row.remote} remote"
    if row.hidden_nodes:
        return f"on {row.hidden_nodes} host nodes, unseen by the guest"
    return "mostly local" if row.memory_doubt else "local"


def _why(rows: list[Forecast]) -> list[str]:
    """The distinct reasons, each with its shapes."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for reason in row.reasons:
            shapes = reasons.setdefault(reason, [])
            shapes += [str(row.topology)] if str(row.topology) not in shapes else []
    return [
        line
        for reason, shapes in reasons.items()
        for line in filled(f"{', '.join(shapes)}: {reason}", width() or WIDEST, then="  ").split("\n")
    ]
