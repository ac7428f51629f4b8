"""VM sizes that suit a host: ranges with the same number of vNUMA nodes, and the even ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from vnuma.domain.topology.forecast import Forecast
from vnuma.domain.topology.layout import Prediction


@dataclass(frozen=True)
class Span:
    """A range of VM sizes (vCPUs) with the same number of vNUMA nodes."""

    nodes: str
    """That number, with alternatives if any; `-` if no host node fits these sizes."""
    memory: str
    confidence: str
    vcpus: tuple[int, ...]
    even: tuple[int, ...]
    """The sizes with equal nodes."""

    @property
    def fits(self) -> bool:
        """Whether the host has that many cores."""
        return self.nodes != "-"


def spans_by_hosts(rows: Sequence[Forecast]) -> dict[tuple[str, ...], tuple[Span, ...]]:
    """The ranges of each host, ascending; hosts with the same ranges share an entry."""
    found: dict[tuple[Span, ...], list[str]] = {}
    for host in dict.fromkeys(name for row in rows for name in row.hosts):
        found.setdefault(tuple(_spans(row for row in rows if host in row.hosts)), []).append(host)
    return {tuple(hosts): spans for spans, hosts in found.items()}


def even_everywhere(found: Iterable[Sequence[Span]]) -> tuple[int, ...]:
    """Sizes that are even on every host, ascending: VMs of such sizes can move to any of them."""
    even = [{size for span in spans for size in span.even if span.fits} for spans in found]
    return tuple(sorted(set.intersection(*even))) if even else ()


def is_even(row: Forecast) -> bool:
    """Whether all vNUMA nodes have the same number of vCPUs, and the size is possible there."""
    return not row.impossible and _even(row.prediction)


def memory_words(row: Forecast) -> str:
    """The placement of this size's memory, in a few words."""
    if row.too_large or row.impossible:
        return "does not fit"
    if row.remote_mb is None:
        return "not known"
    if row.remote_mb:
        return "partly remote"
    return f"on {row.hidden_nodes} host nodes, unseen" if row.hidden_nodes else "local"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in short form: `4-16`, `18-32 by 2`, `33, 36`, `4-14, 16-30 by 2, 36`; or empty."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and (len(runs[-1]) == 1 or number - runs[-1][-1] == runs[-1][1] - runs[-1][0]):
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(_run(run) for run in runs)


def _run(run: Sequence[int]) -> str:
    step = run[1] - run[0] if len(run) > 1 else 0
    if step != 1 and len(run) < 3:
        return ", ".join(map(str, run))
    return f"{run[0]}-{run[-1]}" + (f" by {step}" if step > 1 else "")


def _spans(rows: Iterable[Forecast]) -> Iterator[Span]:
    for nodes, span in groupby(rows, _nodes):
        sizes = list(span)
        even = [row for row in sizes if _even(row.prediction)]
        yield Span(
            nodes=nodes,
            memory=_common(sizes, even, memory_words),
            confidence=_common(sizes, even, lambda row: row.prediction.confidence),
            vcpus=_vcpus(sizes),
            even=_vcpus(even),
        )


def _nodes(row: Forecast) -> str:
    """What the sizes of a range have in common; sizes that fit no host node form one range."""
    if row.impossible:
        return "-"
    others = "".join(f", else {count}" for count in row.prediction.alternatives)
    return f"{row.prediction.vnuma_nodes}{others}"


def _common(sizes: Sequence[Forecast], even: Sequence[Forecast], words: Callable[[Forecast], str]) -> str:
    """What all sizes share, or all even ones, or each distinct text."""
    every = list(dict.fromkeys(map(words, sizes)))
    if len(every) == 1:
        return every[0]
    best = list(dict.fromkeys(map(words, even)))
    return f"{best[0]} if even" if len(best) == 1 else " or ".join(every)


def _even(size: Prediction) -> bool:
    return len(set(size.node_sizes)) == 1


def _vcpus(rows: Iterable[Forecast]) -> tuple[int, ...]:
    return tuple(sum(row.prediction.node_sizes) for row in rows)
