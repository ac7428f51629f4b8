"""The whole calibration: every truth at every number of blocks, planning, stopping, targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.calibration.error_rates import Rate, Rates, measure
from vnuma.analysis.calibration.promised_power import (
    PILOTS,
    STOPPING,
    Promise,
    Stopping,
    kept_pilots,
    promised_power,
    stopping,
)
from vnuma.analysis.calibration.truths import STANDARD, TRUTHS, draw

STUDIES = 10_000
SEED = 20190601
BLOCKS = (6, 8, 12)


@dataclass(frozen=True)
class Calibration:
    """The results, with seed and number of studies, which reproduce them."""

    studies: int
    seed: int
    blocks: tuple[int, ...]
    rates: tuple[Rates, ...]
    promises: tuple[Promise, ...]
    pilots: Rate
    stopping: tuple[Stopping, ...]


def calibrate(
    studies: int = STUDIES,
    seed: int = SEED,
    blocks: Sequence[int] = BLOCKS,
    pilots: int = PILOTS,
    progress: Callable[[str], None] = lambda name: None,
) -> Calibration:
    """Simulate `studies` studies for each truth and number of blocks. Each part has its own random stream."""
    rates = []
    for number, truth in enumerate(TRUTHS):
        progress(truth.name)
        rates += [
            measure(draw(truth, count, studies, np.random.default_rng((seed, 1, number, count))))
            for count in blocks
        ]
    progress("power where it is promised")
    promises = [promised_power(count, studies, np.random.default_rng((seed, 2, count))) for count in blocks]
    kept = kept_pilots(STANDARD, np.random.default_rng((seed, 3)), pilots)
    stopped = []
    for number, (truth, target) in enumerate(STOPPING):
        progress(f"stopping at {target * 100:g}%, {truth.name}")
        stopped.append(stopping(truth, target, studies, np.random.default_rng((seed, 4, number))))
    return Calibration(studies, seed, tuple(blocks), tuple(rates), tuple(promises), kept, tuple(stopped))
