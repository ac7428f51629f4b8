"""Known truths: the scatter of boots and iterations, the host's drift, and the order of arms.

Everything is on the ln scale. The standard truth has an SD of 0.5% between boots and 0.5% within them, three
iterations, four arms against a reference with A/A, random order, and no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vnuma.analysis.distributions import FloatArray

SD = 0.005
QUIET_SD = 0.003
ITERATIONS = 3
ARMS = 4
BIMODAL_SHARE, BIMODAL_SHIFT = 0.2, 0.03
OUTLIER_SHARE, OUTLIER_SHIFT = 0.02, 0.10
WANDER, WANDER_SD = 0.8, 0.01

Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Trend = Callable[[np.random.Generator, int, int], FloatArray]
"""(generator, studies, places) -> the host's drift over the places of a run."""


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal scatter of the standard SD."""
    return SD * generator.standard_normal(shape)


def quiet(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal scatter of a quiet host, 0.3%."""
    return QUIET_SD * generator.standard_normal(shape)


def heavy(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Student's t with 3 degrees of freedom, scaled to the standard SD (its own is the root of 3)."""
    return np.asarray(SD / np.sqrt(3.0) * generator.standard_t(3, shape))


def skewed(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Exponential, centred: boots are never much faster, sometimes much slower."""
    return SD * (generator.standard_exponential(shape) - 1.0)


def lognormal(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Very skewed: exp(N(0,1)), centred, scaled to the standard SD."""
    scale = math.sqrt((math.e - 1) * math.e)
    return SD / scale * (np.exp(generator.standard_normal(shape)) - math.exp(0.5))


def bimodal(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal, and one boot in five 3% slow: a state chosen at power-on."""
    return normal(generator, shape) + BIMODAL_SHIFT * (generator.random(shape) < BIMODAL_SHARE)


def with_outliers(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal, and one iteration in fifty 10% slow."""
    return normal(generator, shape) + OUTLIER_SHIFT * (generator.random(shape) < OUTLIER_SHARE)


def steady(generator: np.random.Generator, studies: int, places: int) -> FloatArray:
    """A host that does not change."""
    del generator
    return np.zeros((studies, places))


def linear(total: float) -> Trend:
    """A host that slows down by `total` (ln scale) from the first place to the last."""

    def trend(generator: np.random.Generator, studies: int, places: int) -> FloatArray:
        del generator
        return np.tile(np.linspace(0.0, total, places), (studies, 1))

    return trend


def wandering(generator: np.random.Generator, studies: int, places: int) -> FloatArray:
    """AR(1) with coefficient 0.8 and a stationary SD of 1%."""
    shocks = WANDER_SD * generator.standard_normal((studies, places))
    path = np.empty_like(shocks)
    path[:, 0] = shocks[:, 0]
    for place in range(1, places):
        path[:, place] = WANDER * path[:, place - 1] + np.sqrt(1 - WANDER**2) * shocks[:, place]
    return path


@dataclass(frozen=True)
class Truth:
    """A simulated world. `spread` multiplies the SD of each column, references first.

    `group` says which target applies: `equal` variances, `unequal`, or `fixed` order.
    """

    name: str
    boots: Draw = normal
    iterations: Draw = normal
    trend: Trend = steady
    fixed_order: bool = False
    references: int = 2
    arms: int = ARMS
    spread: tuple[float, ...] = ()
    group: str = "equal"

    @property
    def columns(self) -> int:
        """Columns of a block."""
        return self.references + self.arms


def _noisy_column(truth: Truth, column: int, factor: float) -> Truth:
    spread = tuple(factor if index == column else 1.0 for index in range(truth.columns))
    return replace(truth, spread=spread, group="unequal")


STANDARD = Truth("normal")
TRUTHS: tuple[Truth, ...] = (
    STANDARD,
    Truth("2% slow iterations", iterations=with_outliers),
    Truth("20% slow boots", boots=bimodal),
    Truth("heavy tails", boots=heavy, iterations=heavy),
    Truth("skewed", boots=skewed, iterations=skewed),
    Truth("drift 3.6%, random order", trend=linear(0.036)),
    Truth("drift 10%, random order", trend=linear(0.10)),
    Truth("wandering host", trend=wandering),
    _noisy_column(Truth("one arm's SD x 2"), 5, 2.0),
    _noisy_column(Truth("one arm's SD x 3"), 5, 3.0),
    _noisy_column(Truth("reference's SD x 2", references=1), 0, 2.0),
    Truth("drift 3.6%, fixed order", trend=linear(0.036), fixed_order=True, group="fixed"),
)
"""Every calibrated truth, in the order of the table."""


def with_sd(boot_sd: float) -> Truth:
    """The standard truth with another SD between boots."""

    def boots(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return boot_sd * generator.standard_normal(shape)

    return replace(STANDARD, boots=boots)


@dataclass(frozen=True, eq=False)
class Studies:
    """Simulated studies: ln(ms) as times[study, block, column, iteration], the reference's columns first.

    `places[study, block, column]` is a cell's place within its block, from 0. `paper[study, arm, iteration]`
    is one boot per arm on the same machine in the order of the table, as the 2019 paper ran it: the scatter
    of the first block, and the host's drift over its first boots.
    """

    truth: Truth
    times: FloatArray
    places: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
    paper: FloatArray

    @property
    def cells(self) -> FloatArray:
        """The cell values Y[study, block, column]: median over iterations."""
        return np.asarray(np.median(self.times, axis=3), dtype=np.float64)


def draw(truth: Truth, blocks: int, studies: int, generator: np.random.Generator) -> Studies:
    """Studies of that truth, without any effect; an effect of e shifts a column by ln(1 + e)."""
    shape = (studies, blocks, truth.columns)
    scatter = truth.boots(generator, shape)[..., None] + truth.iterations(generator, (*shape, ITERATIONS))
    if truth.spread:
        scatter *= np.asarray(truth.spread)[:, None]
    course = truth.trend(generator, studies, blocks * truth.columns).reshape(shape)
    places = _places(truth, shape, generator)
    times = scatter + np.take_along_axis(course, places, axis=2)[..., None]
    once = [0, *range(truth.references, truth.columns)]
    paper = scatter[:, 0, once] + course[:, 0, : len(once), None]
    return Studies(truth, times, places, paper)


def _places(
    truth: Truth, shape: tuple[int, int, int], generator: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    if truth.fixed_order:
        return np.broadcast_to(np.arange(shape[2]), shape)
    return np.argsort(generator.random(shape), axis=2)
