"""What a study will likely show: blocks, detectable effects, and where a rule would end it.

Everything comes from simulated studies of the rule itself (`simulate`), at one SD of a cell. "Likely" is 80%;
nothing here is a promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.power import (
    FEWEST_BLOCKS,
    blocks_for_equivalence,
    blocks_to_detect,
    detectable_effect,
    power,
    power_all,
    power_equivalent,
)
from vnuma.analysis.records import AnalysisDesign
from vnuma.analysis.simulate import SEED, Layout, Simulated
from vnuma.analysis.simulate_decided import Ended, run_decided
from vnuma.analysis.stopping import first_look
from vnuma.analysis.variance import cell_sd

ASSUMED_BOOT_SDS = (0.002, 0.005, 0.01)
ASSUMED_WITHIN_SD = 0.005
TYPICAL_BOOT_SD = 0.005
TYPICAL_SPREADS = (TYPICAL_BOOT_SD, ASSUMED_WITHIN_SD)
"""Between boots, and of an iteration within its boot."""
STOPPED_STUDIES = 2000


@dataclass(frozen=True)
class Spread:
    """An SD to plan with, on the ln scale: `cell_sd` of one cell, `label` for its source."""

    label: str
    cell_sd: float


@dataclass(frozen=True)
class Needed:
    """Blocks that likely detect the effect, and that likely call an arm without effect equivalent.

    None: more than 200.
    """

    spread: Spread
    to_detect: int | None
    for_equivalence: int | None


@dataclass(frozen=True)
class Outlook:
    """What the planned number of blocks likely shows at one SD.

    `detectable`: the effect found in 80% of studies; `power`: how often the given effect is found in one arm,
    `power_all` in every arm; `equivalent`: how often an arm without effect is called equivalent.
    """

    spread: Spread
    blocks: int
    detectable: float
    power: float
    power_all: float
    equivalent: float


@dataclass(frozen=True)
class Ending:
    """Where the precision rule ends a study: mean and 90% point of blocks, share that reaches the cap."""

    mean_blocks: float
    most_blocks: int
    capped: float


@dataclass(frozen=True)
class Leaving:
    """Boots of a study whose arms leave when they are decided (`stop: decided`), at one SD.

    `likely_boots` and `most_boots` (90% point) where the arms are slower by 0, half, once and three times the
    band in turn; `fewest_boots` where all are three bands away. `decided`: the share of the former in which
    every arm has a verdict. `advised_blocks`: the `max_blocks` that suffices; None: more than 48.
    """

    spread: Spread
    fewest_boots: float
    likely_boots: float
    most_boots: int
    decided: float
    advised_blocks: int | None


def assumed_spreads(iterations: int, sizes: int) -> tuple[Spread, ...]:
    """Quiet, usual and noisy hosts; 0.5% between iterations of a boot."""
    return tuple(_assumed(boot_sd, iterations, sizes) for boot_sd in ASSUMED_BOOT_SDS)


def typical_spread(iterations: int, sizes: int) -> Spread:
    """The spread for planning before anything was measured."""
    return _assumed(TYPICAL_BOOT_SD, iterations, sizes)


def _assumed(boot_sd: float, iterations: int, sizes: int) -> Spread:
    return Spread(f"{boot_sd * 100:.1f}%", cell_sd(boot_sd, ASSUMED_WITHIN_SD, iterations, sizes))


def layout_of(design: AnalysisDesign, blocks: int) -> Layout:
    """The design's columns. Raises ValueError when nothing is compared."""
    if not design.compared:
        raise ValueError("a study with only the reference arm compares nothing")
    return Layout(len(design.compared), len(design.reference_labels), blocks)


def needed(design: AnalysisDesign, spread: Spread, effect: float) -> Needed:
    """Blocks for an effect (ratio: 0.01 is 1%) and for equivalence within the design's own margin."""
    arms, references = len(design.compared), len(design.reference_labels)
    return Needed(
        spread,
        blocks_to_detect(effect, spread.cell_sd, arms, references),
        blocks_for_equivalence(design.equivalence, spread.cell_sd, arms, references),
    )


def outlook(design: AnalysisDesign, blocks: int, spread: Spread, effect: float) -> Outlook | None:
    """The effects that this number of blocks can show; None below 6 blocks and in fixed order, which have no
    verdict.
    """
    if blocks < FEWEST_BLOCKS or design.order == "fixed":
        return None
    layout = layout_of(design, blocks)
    return Outlook(
        spread,
        blocks,
        detectable_effect(spread.cell_sd, layout),
        power(effect, spread.cell_sd, layout),
        power_all(effect, spread.cell_sd, layout),
        power_equivalent(design.equivalence, spread.cell_sd, layout),
    )


def ending(design: AnalysisDesign, precision: float, spread: Spread) -> Ending:
    """Simulated studies, looked at after each block as `stopping` says, up to the design's blocks."""
    layout = layout_of(design, design.blocks)
    k = layout.arms + layout.references
    y = np.random.default_rng((SEED, k)).standard_normal((STOPPED_STUDIES, layout.blocks, k))
    ended = np.full(STOPPED_STUDIES, layout.blocks)
    widest_allowed = math.log1p(precision) / spread.cell_sd
    going = np.ones(STOPPED_STUDIES, dtype=bool)
    for blocks in range(first_look(k), layout.blocks):
        widest = Simulated(y[going, :blocks], layout.references).half_width_95.max(axis=1)
        stops = np.flatnonzero(going)[widest <= widest_allowed]
        ended[stops], going[stops] = blocks, False
        if not going.any():
            break
    return Ending(float(ended.mean()), int(np.quantile(ended, 0.9)), float(going.mean()))


_IN_TURN = (0.0, 0.5, 1.0, 3.0)
"""Effects to plan with, in bands."""
_MAX_BLOCKS = (8, 12, 16, 24, 32, 48)
_BLOCKS_PER_NOISE = 21.4
"""Blocks that arms on either side of the band need, by (SD of a cell / band)^2."""
_LEAVING_STUDIES = 400


def leaving(design: AnalysisDesign, spread: Spread) -> Leaving:
    """Simulated studies of the rule, with at most the design's blocks. Raises ValueError as `layout_of`."""
    layout = layout_of(design, design.blocks)
    band = math.log1p(design.equivalence)
    effects = np.array([band * _IN_TURN[arm % len(_IN_TURN)] for arm in range(layout.arms)])
    mixed = _left(layout, effects, spread, band)
    apart = _left(layout, np.full(layout.arms, 3 * band), spread, band)
    wanted = _BLOCKS_PER_NOISE * (spread.cell_sd / band) ** 2
    return Leaving(
        spread,
        float(apart.boots.mean()),
        float(mixed.boots.mean()),
        int(np.quantile(mixed.boots, 0.9)),
        float((mixed.word > 0).all(axis=1).mean()),
        next((blocks for blocks in _MAX_BLOCKS if blocks >= wanted), None),
    )


def _left(layout: Layout, effects: FloatArray, spread: Spread, band: float) -> Ended:
    columns = layout.arms + layout.references
    shape = (_LEAVING_STUDIES, layout.blocks, columns)
    y = spread.cell_sd * np.random.default_rng((SEED, columns)).standard_normal(shape)
    y[:, :, layout.references :] += effects
    return run_decided(y, layout.references, band)
