"""The order of cells, from a stored seed: complete blocks, shuffled, in squares, or fixed.

Square designs balance the columns' places in blocks by construction. They are randomised from the seed too,
since a fixed balanced order would still be somebody's choice.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from vnuma.domain.study.study import Study
from vnuma.words.plain_text import counted, duration

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


# From power-off to a quiet SQL Server on real hardware; replaced by measured times after block 1.
ASSUMED_BOOT_S = 300.0

# A machine's pass besides its reads: connecting, dropping caches, reading the file in.
ASSUMED_PASS_S = 5.0


def assumed_cell_seconds(study: Study) -> float:
    """The assumed duration of a boot, or of a pass over a machine, on real hardware."""
    executions = study.design.warmups + study.design.iterations
    return assumed_boot_seconds(study) + assumed_iteration_seconds(study) * executions


def assumed_boot_seconds(study: Study) -> float:
    """The part of it before the first iteration."""
    return ASSUMED_PASS_S if study.replicate == "pass" else ASSUMED_BOOT_S + study.quiet.for_s


def assumed_iteration_seconds(study: Study) -> float:
    """The part of it for one pass over all sizes and forms."""
    workload = study.workload
    return sum(workload.assumed_seconds(size, form) for size in workload.sizes for form in workload.forms)


def assumed_seconds_without(study: Study, size: int) -> float:
    """The assumed duration of a boot that does not measure that size."""
    workload = study.workload
    each = sum(workload.assumed_seconds(size, form) for form in workload.forms)
    return assumed_cell_seconds(study) - each * (study.design.warmups + study.design.iterations)


_NIGHT_S = 10 * 3600.0
"""A night without `allowed_hours`."""


def effort_words(study: Study, boots: int, seconds: float) -> str:
    """As in "102 boots, 44 h 12 min, 5 nights"; nights are windows of `allowed_hours`, or of 10 h."""
    hours = study.allowed_hours
    window = (hours.longest_s if hours else None) or _NIGHT_S
    nights = math.ceil(seconds / max(window - (hours.restore_s if hours else 0), 60.0))
    text = f"{counted(boots, study.replicate)}, {duration(seconds)}"
    return text if nights < 2 else f"{text}, {nights} nights"


def seconds_in_all(vms: Iterable[tuple[Hashable, float]], *, take_turns: bool) -> float:
    """The total duration for VMs, each given by its host and its own seconds.

    Hosts work in parallel; the VMs of one host take turns, unless the study measures neighbours together.
    """
    hosts: dict[Hashable, list[float]] = defaultdict(list)
    for host, seconds in vms:
        hosts[host].append(seconds)
    return max((sum(own) if take_turns else max(own) for own in hosts.values()), default=0.0)


METHOD = 7
"""The version of docs/statistics.md's method; raised by every change that can alter a verdict.

2: squares with the place as a factor, the place as a declared covariate. 3: verdicts wait for the last
declared cell. 4: and for a failed cell that is tried again. 5: a clock's steps are compared on the ln scale.
6: a column that scatters far more takes the pooled error from every arm. 7: a program's figures that are all
equal have a step of their last digit.
"""
SCOPE = "declared"
"""Scope of the run's facts `plan` and `sha256`."""

_NAMES = {
    "study_sha256": "the study file",
    "method": "the method of analysis",
    "stopping": "the stopping rule",
    "order": "the order of arms",
    "covariate": "the covariate",
    "seed": "the seed of the order",
    "equivalence": "the band of equivalence",
    "reference": "the reference arm",
}


def declaration(study: Study, study_sha256: str, earlier_runs: Sequence[str]) -> dict[str, Any]:
    """The plan as a storable value; `study_sha256` is the hash of the study file's text."""
    design = study.design
    return {
        **({"covariate": design.covariate} if design.covariate != "none" else {}),
        "study_sha256": study_sha256,
        "method": METHOD,
        "stopping": {
            "blocks": design.most_blocks,
            "precision": design.precision,
            "max_hours": design.max_hours,
            **(_decided(study) if design.stop == "decided" else {}),
        },
        "order": design.order,
        "seed": design.seed,
        "equivalence": design.equivalence,
        "reference": study.reference,
        "earlier_runs": list(earlier_runs),
    }


def _decided(study: Study) -> dict[str, Any]:
    """The rule by which arms leave; its levels follow from these figures."""
    arms = sum(arm != study.reference for arm, _ in columns(study))
    return {"stop": "decided", "rule": "group-sequential, power family 1.5, looks from block 4", "arms": arms}


def hash_of(plan: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON: sorted keys, no spaces, ASCII."""
    text = json.dumps(plan, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def earlier_runs(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Earlier runs of the study, whose outcome may have been known when it was declared."""
    named = declared.get("earlier_runs")
    return tuple(map(str, named)) if isinstance(named, list) else ()


def deviations(declared: Mapping[str, Any], sha256: str, now: Mapping[str, Any]) -> tuple[str, ...]:
    """Deviations from a stored declaration with its hash at that time, as text.

    `now` is the declaration recomputed from the store.
    """
    if hash_of(declared) != sha256:
        return ("the stored plan does not match its hash: it was altered",)
    return tuple(f"{name} differs" for key, name in _NAMES.items() if declared.get(key) != now.get(key))
