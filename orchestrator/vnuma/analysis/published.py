"""Published medians by size and arm: what can be computed from them, and the possible effect of drift.

There is no interval: a table of medians has neither boots nor order, so nothing in it measures the error
between boots. An additive model's residuals only show how uneven the table is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.distributions import FloatArray, t_quantile
from vnuma.analysis.growth import slope_weights

STUDIES = 20_000
SEED = 20190601
RUNS = 3
RUN_SD = 0.003
BOOT_SDS = (0.0, 0.002, 0.005)


@dataclass(frozen=True)
class Table:
    """Elapsed ms by size (rows a side) and arm; the first arm is the reference."""

    arms: tuple[str, ...]
    sizes: tuple[int, ...]
    ms: tuple[tuple[float, ...], ...]

    @property
    def logs(self) -> FloatArray:
        """ln(ms), one row a size."""
        return np.asarray(np.log(np.array(self.ms)))


@dataclass(frozen=True)
class Description:
    """Figures from the table alone; ratios to the reference, shares as ratios minus 1.

    `slopes`: change of each arm's difference in percentage points when the joined rows double. `exponent`:
    power of the number of joined rows with which the reference's time grows. `residual_sd` and `half_width`
    (95%, one comparison) are those of the model size + arm; `half_width` would be valid if those residuals
    were the error, which they are not. `in_order`: rows in which every arm is slower than the one before it.
    """

    ratios: tuple[tuple[float, ...], ...]
    mean_ratios: tuple[float, ...]
    microseconds_per_row: tuple[float, ...]
    slopes: tuple[float, ...] | None
    exponent: float | None
    residual_sd: float | None
    half_width: float | None
    in_order: int


@dataclass(frozen=True)
class DriftShare:
    """Studies without any effect: how often all arms are in order in every row.

    `drift` is from the first arm's boot to the last one's, as a ratio minus 1.
    """

    drift: float
    boot_sd: float
    fixed: float
    random: float


def describe(table: Table) -> Description:
    """The figures that do not need an error."""
    y = table.logs
    d = y - y[:, :1]
    rows = np.array([size**2 for size in table.sizes], dtype=np.float64)
    several = len(table.sizes) > 1
    weights = np.array(slope_weights(table.sizes, "rows a side")) if several else None
    sd = width = None
    df = (len(table.sizes) - 1) * (len(table.arms) - 1)
    if df > 0:
        residual = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
        sd = math.sqrt(float((residual**2).sum()) / df)
        width = t_quantile(0.975, df) * sd * math.sqrt(2 / len(table.sizes))
    return Description(
        ratios=tuple(tuple(map(float, row)) for row in np.exp(d)),
        mean_ratios=tuple(map(float, np.exp(d.mean(axis=0)))),
        microseconds_per_row=tuple(map(float, np.array(table.ms)[:, 0] * 1000 / rows)),
        slopes=None if weights is None else tuple(map(float, 100 * math.log(2) * (weights @ d))),
        exponent=None if weights is None else float(weights @ y[:, 0]),
        residual_sd=sd,
        half_width=width,
        in_order=int((np.diff(y, axis=1) > 0).all(axis=1).sum()),
    )


def drift_alone(table: Table, drifts: Sequence[float], studies: int = STUDIES) -> tuple[DriftShare, ...]:
    """Simulate the table without any effect: one boot per arm that runs every size, medians of 3 runs.

    The host slows down evenly from the first boot to the last; in random order the arms are shuffled once per
    study. Runs scatter by 0.3%, boots by each of BOOT_SDS.
    """
    found = []
    for number, (drift, boot_sd) in enumerate((d, sd) for d in drifts for sd in BOOT_SDS):
        generator = np.random.default_rng((SEED, number))
        arms, sizes = len(table.arms), len(table.sizes)
        noise = np.median(RUN_SD * generator.standard_normal((studies, sizes, arms, RUNS)), axis=3)
        noise += boot_sd * generator.standard_normal((studies, 1, arms))
        course = np.linspace(0.0, math.log1p(drift), arms)
        shuffled = generator.permuted(np.tile(course, (studies, 1)), axis=1)[:, None, :]
        found.append(
            DriftShare(drift, boot_sd, _all_in_order(noise + course), _all_in_order(noise + shuffled))
        )
    return tuple(found)


def _all_in_order(y: FloatArray) -> float:
    return float((np.diff(y, axis=2) > 0).all(axis=(1, 2)).mean())
