"""Golden figures and small studies for the tests of the analysis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis.analyse import analyse
from vnuma.analysis.cells import Grid
from vnuma.analysis.compare import Comparison, Interval, compare
from vnuma.analysis.records import AnalysisDesign, CellRecord, Column, Series
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label, Verdict

FloatArray = NDArray[np.float64]

LABELS = ("R", "A", "2x8", "4x4", "8x2", "16x1")
ARMS = LABELS[2:]
EFFECTS = (0.0, 0.0, 0.0, 0.015, 0.025, 0.04)
G1_MS = np.array(
    [
        [77135, 77013, 77543, 78380, 78891, 79392],
        [76595, 77494, 77072, 78545, 78322, 79643],
        [76419, 76596, 77254, 77624, 78503, 79740],
        [76147, 76290, 76377, 77794, 78041, 79273],
        [76300, 76426, 76434, 78130, 77862, 79505],
        [76477, 76286, 77111, 77736, 78301, 78929],
    ],
    dtype=np.float64,
)
G2_16X1_MS = np.array([77838, 79398, 80802, 80008, 80631, 77857], dtype=np.float64)


def g2_ms() -> FloatArray:
    """G1 with a 16x1 that varies far more than the others."""
    changed = G1_MS.copy()
    changed[:, 5] = G2_16X1_MS
    return changed


def as_grid(ms: FloatArray, labels: Sequence[str] = LABELS) -> Grid:
    """A grid of ln(ms), blocks numbered from 1."""
    return Grid(tuple(labels), tuple(range(1, len(ms) + 1)), np.log(ms))


def compare_ms(ms: FloatArray, labels: Sequence[str] = LABELS, alpha: float = 0.05) -> Comparison:
    """Compare columns of times; R and A are the reference."""
    reference = [label for label in labels if label in ("R", "A")]
    arms = {label: label for label in labels if label not in ("R", "A")}
    return compare(as_grid(ms, labels), reference, arms, alpha)


@dataclass
class Study:
    """A small study under construction: a design, its series and its cells."""

    design: AnalysisDesign
    series: list[Series] = field(default_factory=list)
    cells: list[CellRecord] = field(default_factory=list)

    def scale(self, factor: Callable[[Series], float]) -> Study:
        """Multiply each time by its series' factor."""
        self.series = [
            s._replace(elapsed_ms=tuple(ms * factor(s) for ms in s.elapsed_ms)) for s in self.series
        ]
        return self

    def without(self, arm: str) -> Study:
        """As where the plan leaves the arm out: it has neither cells nor series."""
        self.series = [one for one in self.series if one.arm != arm]
        self.cells = [cell for cell in self.cells if cell.arm != arm]
        return self

    def drop(
        self, unwanted: Callable[[CellRecord], bool], outcome: str = "failed", reason: str = "tools_timeout"
    ) -> Study:
        """Let cells fail: they keep their record, and lose their series."""
        gone = {(cell.label, cell.block) for cell in self.cells if unwanted(cell)}
        self.series = [s for s in self.series if (s.label, s.block) not in gone]
        self.cells = [
            CellRecord(c.label, c.arm, c.block, c.vm, outcome, reason, c.position)
            if (c.label, c.block) in gone
            else c
            for c in self.cells
        ]
        return self


def columns_of(
    arms: Iterable[str] = ARMS, *, a_a: bool = True, reference: str = "1x16"
) -> tuple[Column, ...]:
    """The reference, its A/A column, and the arms."""
    own = [Column(reference, reference)]
    if a_a:
        own.append(Column(f"{reference} (A/A)", reference))
    return (*own, *(Column(arm, arm) for arm in arms))


def study_of(
    ms: FloatArray,
    columns: Sequence[Column],
    *,
    sizes: Sequence[int] = (2000,),
    iterations: Sequence[float] = (1.0, 1.001, 0.999),
    order: str = "randomised",
    seed: int = 7,
) -> Study:
    """A complete study whose boot medians are ms[block, column] times a factor for each size."""
    blocks = len(ms)
    design = AnalysisDesign(
        reference=columns[0].arm,
        columns=tuple(columns),
        sizes=tuple(sizes),
        forms=("client",),
        vms=("sql16",),
        blocks=blocks,
        order="fixed" if order == "fixed" else "randomised",
    )
    study = Study(design)
    generator = np.random.default_rng(seed)
    for b in range(blocks):
        places = np.arange(len(columns)) if order == "fixed" else generator.permutation(len(columns))
        for c, column in enumerate(columns):
            position = b * len(columns) + int(places[c])
            study.cells.append(CellRecord(column.label, column.arm, b + 1, "sql16", "valid", "", position))
            study.series += _series(column, b + 1, float(ms[b, c]), sizes, iterations)
    return study


def _series(
    column: Column, block: int, ms: float, sizes: Sequence[int], iterations: Sequence[float]
) -> list[Series]:
    return [
        Series(
            label=column.label,
            arm=column.arm,
            block=block,
            vm="sql16",
            size=size,
            form="client",
            elapsed_ms=tuple(ms * (size / sizes[0]) ** 2 * factor for factor in iterations),
        )
        for size in sizes
    ]


def noisy_ms(
    blocks: int,
    columns: int,
    sd: float,
    effects: Sequence[float] = (),
    *,
    seed: int = 1,
    base: float = 20_000,
) -> FloatArray:
    """Times with normal boot noise (ln scale) and an effect per column (ratio minus 1)."""
    y = np.random.default_rng(seed).normal(0.0, sd, (blocks, columns))
    y[:, : len(effects)] += np.log1p(np.asarray(effects, dtype=np.float64))
    return np.asarray(base * np.exp(y), dtype=np.float64)


def usual_study(
    blocks: int = 8,
    sd: float = 0.003,
    order: str = "randomised",
    iterations: tuple[float, ...] = (1.0, 1.001, 0.999),
) -> Study:
    """Two sizes of every arm, of which three are slower, by EFFECTS."""
    ms = noisy_ms(blocks, 6, sd, EFFECTS)
    return study_of(ms, columns_of(), sizes=(500, 2000), order=order, iterations=iterations)


def analysed(study: Study, **design: Any) -> Analysis:
    """Its first analysis by the primary metric, with another design."""
    return analyse(study.series, study.cells, replace(study.design, **design)).primary[0]


def words(found: Analysis) -> dict[str, Label]:
    """Each arm's verdict."""
    return {item.arm: item.verdict.label for item in found.arms}


def verdict_of(found: Analysis, arm: str) -> Verdict:
    """One arm's."""
    return next(item.verdict for item in found.arms if item.arm == arm)


def log_limits(interval: Interval | None) -> list[float]:
    """Its limits, as logarithms."""
    assert interval is not None
    return [math.log(interval.low), math.log(interval.high)]


def caution_ids(analysis: Analysis) -> set[str]:
    """What it warns of."""
    return {caution.id for caution in analysis.cautions}
