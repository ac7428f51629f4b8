"""The order of cells, from a stored seed: complete blocks, shuffled, in squares, or fixed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.domain.study.squares import latin_square, williams_square
from vnuma.domain.study.study import Study

A_A_SUFFIX = " (A/A)"


@dataclass(frozen=True)
class PlannedCell:
    """A planned cell: arm and block, and its position in the VM's order.

    `label` is its column in reports: the arm's name, except for the second run of the reference arm.
    """

    position: int
    block: int
    arm: str
    label: str


def columns(study: Study) -> tuple[tuple[str, str], ...]:
    """(arm, label) of every column of a block: the A/A column second, the positive control last."""
    plain = [(label, label) for label in study.labels]
    if study.design.a_a:
        plain.insert(study.labels.index(study.reference) + 1, (study.reference, study.reference + A_A_SUFFIX))
    if study.control_arm:
        plain.append((study.control_arm, study.control_arm))
    return tuple(plain)


def plan_cells(study: Study, vm_index: int = 0) -> tuple[PlannedCell, ...]:
    """Every cell of one VM in order; the same seed gives the same order.

    Each VM of a study has its own order, so that no arm has the same hour on all of them.
    """
    generator = random.Random(f"{study.design.seed}/{vm_index}")
    order = _blocks(study, generator)
    cells: list[PlannedCell] = []
    for block in range(1, study.design.most_blocks + 1):
        row = next(order)
        cells += [
            PlannedCell(len(cells) + i, block, arm, label) for i, (arm, label) in enumerate(row, start=1)
        ]
    return tuple(cells)


def _blocks(study: Study, generator: random.Random) -> Iterator[list[tuple[str, str]]]:
    """An endless sequence of blocks; squares follow one another."""
    every = columns(study)
    while True:
        match study.design.order:
            case "fixed":
                yield list(every)
            case "randomised":
                row = list(every)
                generator.shuffle(row)
                yield row
            case "latin_square":
                yield from ([every[i] for i in row] for row in latin_square(len(every), generator))
            case "williams":
                yield from ([every[i] for i in row] for row in williams_square(len(every), generator))
