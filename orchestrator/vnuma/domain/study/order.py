"""The order of cells, from a stored seed: complete blocks, shuffled, in squares, or fixed.

Square designs balance the columns' places in blocks by construction. They are randomised from the seed too,
since a fixed balanced order would still be somebody's choice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

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


Rows = list[list[int]]


def latin_square(columns: int, generator: Random) -> Rows:
    """`columns` blocks in which every column has every place once (Fisher 1926).

    The cyclic square with its rows, places and columns shuffled.
    """
    rows, places, names = (generator.sample(range(columns), columns) for _ in range(3))
    return [[names[(row + place) % columns] for place in places] for row in rows]


def williams_square(columns: int, generator: Random) -> Rows:
    """Blocks in which every column also follows every other equally often (Williams 1949).

    `columns` blocks for an even number, with each ordered pair once in succession; twice as many for an odd
    one, with each pair twice. The zigzag 0, 1, n-1, 2, n-2, ... has every difference once; its shifts make
    the square.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -(place // 2) % columns for place in range(columns)]
    rows = [[(step + shift) % columns for step in zigzag] for shift in range(columns)]
    if columns % 2:
        rows += [row[::-1] for row in rows]
    names = generator.sample(range(columns), columns)
    generator.shuffle(rows)
    return [[names[column] for column in row] for row in rows]


def blocks_of_square(order: str, columns: int) -> int:
    """Number of blocks in one square; 1 if every block is balanced by itself."""
    if order == "latin_square":
        return columns
    if order == "williams":
        return columns * (1 + columns % 2)
    return 1
