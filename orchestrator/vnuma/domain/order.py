"""The order of cells: randomised complete blocks from a stored seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from vnuma.domain.study import Study

A_A_SUFFIX = " (A/A)"


@dataclass(frozen=True)
class PlannedCell:
    """One cell to be: its place in the order, and the column it belongs to.

    `label` is the arm's name; the second run of the reference arm in a block has a label of its own.
    """

    position: int
    block: int
    arm: str
    label: str


def columns(study: Study) -> tuple[tuple[str, str], ...]:
    """(arm, label) of every column of a block, the A/A column second."""
    plain = [(label, label) for label in study.labels]
    if study.design.a_a:
        plain.insert(study.labels.index(study.reference) + 1, (study.reference, study.reference + A_A_SUFFIX))
    return tuple(plain)


def plan_cells(study: Study, vm_index: int = 0) -> tuple[PlannedCell, ...]:
    """Every cell of one VM in the order it is run; the same seed gives the same order.

    Each VM of a study has an order of its own, so that no arm meets the same hour on all of them.
    """
    generator = random.Random(f"{study.design.seed}/{vm_index}")
    cells: list[PlannedCell] = []
    for block in range(1, study.design.blocks + 1):
        order = list(columns(study))
        if study.design.order == "randomised":
            generator.shuffle(order)
        cells += [
            PlannedCell(len(cells) + i, block, arm, label) for i, (arm, label) in enumerate(order, start=1)
        ]
    return tuple(cells)
