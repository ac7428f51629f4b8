"""`vnuma predict --sweep`: which VM sizes suit a host, and where the number of vNUMA nodes changes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vnuma.cli.screen import aligned, width
from vnuma.cli.shape_options import some
from vnuma.errors import UsageError

if TYPE_CHECKING:
    from vnuma.domain.topology.forecast import Forecast
    from vnuma.domain.topology.sizes import Span
    from vnuma.domain.vm.setting import Value

_SWEEP = re.compile(r"(?:vcpus=)?([1-9][0-9]{0,2})\.\.([1-9][0-9]{0,2})", re.ASCII)
_MOST = 768
_AUTOMATIC_SINCE = 20


def swept_sizes(text: str, cores_per_socket: int | None, hardware: int) -> list[dict[str, Value]]:
    """The shapes of `vcpus=4..128` as settings: each size that is a multiple of the cores per socket.

    Without cores per socket the host chooses: hardware version 20 and later has a setting for that; in older
    versions 1 core per socket means it. Raises UsageError.
    """
    match = _SWEEP.fullmatch(text.strip())
    first, last = map(int, match.groups()) if match else (1, 0)
    if not first <= last <= _MOST:
        raise UsageError(
            f"--sweep {text} is not a range of vCPUs (the smaller number first, at most {_MOST}).",
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
    from vnuma.domain.topology.sizes import even_everywhere, ranges, spans_by_hosts

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
    from vnuma.domain.topology.sizes import ranges

    even = "all" if span.even == span.vcpus else ranges(span.even) or "none"
    figures = [even, span.confidence] if span.fits else ["-", "-"]
    return [ranges(span.vcpus), span.nodes, *figures, span.memory]
