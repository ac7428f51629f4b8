"""`vnuma predict --sweep`: which VM sizes suit a host, and where the number of vNUMA nodes changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from vnuma.cli.screen import aligned, width
from vnuma.cli.shape_options import some
from vnuma.errors import UsageError

if TYPE_CHECKING:
    from vnuma.domain.topology.forecast import Forecast
    from vnuma.domain.topology.layout import Prediction
    from vnuma.domain.vm.setting import Value

_SWEEP = re.compile(r"(?:vcpus=)?([1-9][0-9]{0,2})\.\.([1-9][0-9]{0,2})", re.ASCII)
_MOST = 768
_AUTOMATIC_SINCE = 20


def swept_sizes(text: str, cores_per_socket: int | None, hardware: int) -> list[dict[str, Value]]:
    """The shapes of `vcpus=4..128` as settings: one for each size that is a multiple of the cores per socket.

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


@dataclass(frozen=True)
class Span:
    """Neighbouring VM sizes (vCPUs) with the same number of vNUMA nodes; `even`: those whose nodes are
    equal.
    """

    nodes: str
    memory: str
    confidence: str
    vcpus: tuple[int, ...]
    even: tuple[int, ...]


def sweep_table(rows: Sequence[Forecast]) -> list[str]:
    """A line for each span; hosts with the same spans share lines."""
    found: dict[tuple[Span, ...], list[str]] = {}
    for host in dict.fromkeys(name for row in rows for name in row.hosts):
        found.setdefault(tuple(_spans(row for row in rows if host in row.hosts)), []).append(host)
    header = ["vCPUs", "vNUMA nodes", "even sizes", "confidence", "memory"]
    lines = []
    for spans, hosts in found.items():
        if len(found) > 1:
            lines += [f"On {some(hosts)}:", ""]
        lines += [*aligned([header, *map(_line, spans)], width()), ""]
    return [
        *lines,
        "Even: every vNUMA node has the same number of vCPUs. Set that number as cores per socket.",
    ]


def _spans(rows: Iterable[Forecast]) -> Iterator[Span]:
    for (nodes, memory), span in groupby(rows, _alike):
        sizes = [row.prediction for row in span]
        even = [one for one in sizes if len(set(one.node_sizes)) == 1]
        yield Span(nodes, memory, _confidence(sizes, even), _vcpus(sizes), _vcpus(even))


def _alike(row: Forecast) -> tuple[str, str]:
    """What the sizes of a span have in common; sizes that no host node can hold form one span."""
    if row.too_wide:
        return "-", "does not fit"
    others = "".join(f", else {count}" for count in row.prediction.alternatives)
    return f"{row.prediction.vnuma_nodes}{others}", _memory(row)


def _confidence(sizes: Sequence[Prediction], even: Sequence[Prediction]) -> str:
    """The confidence of all sizes, and of the even ones if it differs."""
    every = {one.confidence for one in sizes}
    best = {one.confidence for one in even}
    if len(every) == 1:
        return every.pop()
    return f"{best.pop()} if even" if len(best) == 1 else "high or low"


def _vcpus(sizes: Iterable[Prediction]) -> tuple[int, ...]:
    return tuple(sum(one.node_sizes) for one in sizes)


def _memory(row: Forecast) -> str:
    if row.remote_mb is None:
        return "not known"
    if row.remote_mb:
        return "partly remote"
    return f"on {row.hidden_nodes} host nodes, unseen" if row.hidden_nodes else "local"


def _line(span: Span) -> list[str]:
    even = "all" if span.even == span.vcpus else _ranges(span.even) or "none"
    told = ["-", "-"] if span.nodes == "-" else [even, span.confidence]
    return [_ranges(span.vcpus), span.nodes, *told, span.memory]


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, short: `4-16`, `18-32 by 2`, `33 36 40`; empty for none."""
    steps = {after - before for before, after in pairwise(numbers)}
    if len(numbers) < 3 or len(steps) > 1:
        return " ".join(map(str, numbers))
    (step,) = steps
    return f"{numbers[0]}-{numbers[-1]}" + (f" by {step}" if step > 1 else "")
