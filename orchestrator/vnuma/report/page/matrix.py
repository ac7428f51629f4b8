"""Many VMs at one glance: a row each, a column for each arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vnuma.report.page.page import VerdictRow, VmPart


@dataclass(frozen=True)
class MatrixRow:
    """A VM; `cells` in the order of the arms."""

    key: str
    vm: str
    host: str
    cells: tuple[VerdictRow, ...]


@dataclass(frozen=True)
class Matrix:
    """`counts`: for each arm, how many VMs have which verdict: `3 slower`."""

    arms: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    counts: tuple[tuple[str, ...], ...]


def matrix(parts: Sequence[VmPart]) -> Matrix:
    """All VMs of a run, in the order of the study."""
    arms = tuple(dict.fromkeys(row.arm for part in parts for row in part.verdicts[1:]))
    rows = tuple(
        MatrixRow(part.key, part.vm.name, part.vm.esxi_host, tuple(_cell(part, arm) for arm in arms))
        for part in parts
    )
    return Matrix(
        arms, rows, tuple(_counts([row.cells[column] for row in rows]) for column in range(len(arms)))
    )


def _cell(part: VmPart, arm: str) -> VerdictRow:
    return next(row for row in part.verdicts if row.arm == arm)


def _counts(cells: Sequence[VerdictRow]) -> tuple[str, ...]:
    return tuple(f"{number} {short}" for short, number in Counter(cell.short for cell in cells).most_common())
