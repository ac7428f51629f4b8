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
ITERATIONS = 3
ARMS = 4
WANDER, WANDER_SD = 0.8, 0.01

Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Trend = Callable[[np.random.Generator, int, int], FloatArray]
"""(generator, studies, places) -> the host's drift over the places of a run."""


def scatter(sd: float) -> Draw:
    """Normal scatter."""
    return lambda generator, shape: sd * generator.standard_normal(shape)


def student(df: float, sd: float) -> Draw:
    """Student's t; its own SD is the root of df / (df - 2), infinite for df = 2."""
    return lambda generator, shape: np.asarray(sd * generator.standard_t(df, shape))


def sometimes(share: float, shift: float) -> Draw:
    """Normal, and a share of them slow: a state chosen at power-on, or an iteration that meets a backup."""
    return lambda generator, shape: normal(generator, shape) + shift * (generator.random(shape) < share)


normal = scatter(SD)
quiet = scatter(0.003)
"""A quiet host."""
heavy = student(3, SD / math.sqrt(3.0))


def skewed(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Exponential, centred: boots are never much faster, sometimes much slower."""
    return SD * (generator.standard_exponential(shape) - 1.0)


def lognormal(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Very skewed: exp(N(0,1)), centred, scaled to the standard SD."""
    scale = math.sqrt((math.e - 1) * math.e)
    return SD / scale * (np.exp(generator.standard_normal(shape)) - math.exp(0.5))


def course(height: Callable[[FloatArray], object]) -> Trend:
    """A host whose speed is a function of the number of the boot."""

    def trend(generator: np.random.Generator, studies: int, places: int) -> FloatArray:
        del generator
        heights = np.asarray(height(np.arange(places, dtype=np.float64)), dtype=np.float64)
        return np.tile(heights, (studies, 1))

    return trend


def linear(total: float) -> Trend:
    """A host that slows down by `total` (ln scale) from the first place to the last."""
    return course(lambda places: np.linspace(0.0, total, len(places)))


steady = linear(0.0)


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


STANDARD = Truth("normal")
HEAVY = Truth("heavy tails", boots=heavy, iterations=heavy)
NOISY_ARM = Truth("one arm's SD x 2", spread=(1, 1, 1, 1, 1, 2), group="unequal")
TRUTHS: tuple[Truth, ...] = (
    STANDARD,
    Truth("2% slow iterations", iterations=sometimes(0.02, 0.10)),
    Truth("20% slow boots", boots=sometimes(0.2, 0.03)),
    HEAVY,
    Truth("skewed", boots=skewed, iterations=skewed),
    Truth("drift 3.6%, random order", trend=linear(0.036)),
    Truth("drift 10%, random order", trend=linear(0.10)),
    Truth("wandering host", trend=wandering),
    NOISY_ARM,
    replace(NOISY_ARM, name="one arm's SD x 3", spread=(1, 1, 1, 1, 1, 3)),
    replace(NOISY_ARM, name="reference's SD x 2", references=1, spread=(2, 1, 1, 1, 1)),
    Truth("drift 3.6%, fixed order", trend=linear(0.036), fixed_order=True, group="fixed"),
)
"""Every calibrated truth, in the order of the table."""


def with_sd(boot_sd: float) -> Truth:
    """The standard truth with another SD between boots."""
    return replace(STANDARD, boots=scatter(boot_sd))


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
    noise = truth.boots(generator, shape)[..., None] + truth.iterations(generator, (*shape, ITERATIONS))
    if truth.spread:
        noise *= np.asarray(truth.spread)[:, None]
    drift = truth.trend(generator, studies, blocks * truth.columns).reshape(shape)
    if truth.fixed_order:
        places = np.broadcast_to(np.arange(truth.columns), shape)
    else:
        places = np.argsort(generator.random(shape), axis=2)
    times = noise + np.take_along_axis(drift, places, axis=2)[..., None]
    once = [0, *range(truth.references, truth.columns)]
    paper = noise[:, 0, once] + drift[:, 0, : len(once), None]
    return Studies(truth, times, places, paper)
