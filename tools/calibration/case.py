"""What the simulations of hard cases share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tools.calibration.error_rates import Rate
from tools.calibration.targets import Case as Found
from tools.calibration.targets import Target, at_least, at_most
from vnuma.analysis.distributions import FloatArray, t_quantile
from vnuma.analysis.simulate import Simulated

QUIET_SD = 0.003


@dataclass(frozen=True)
class Case:
    """One rate in one case. `bound` holds for all cases of a target: at most, or at least, that share."""

    target: str
    where: str
    bound: float
    rate: Rate
    at_most: bool = True


def quiet(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal scatter of a quiet host, 0.3%."""
    return QUIET_SD * generator.standard_normal(shape)


def prediction_width(result: Simulated) -> FloatArray:
    """Per study and arm: half the range of one more boot against one of the reference, 95%."""
    y, r = result.y, result.references
    one = np.mean([(y[:, :, r:] - y[:, :, [at]]).var(axis=1, ddof=1) for at in range(r)], axis=0)
    return np.asarray(t_quantile(0.975, y.shape[1] - 1) * np.sqrt(result.own_se**2 + one))


def targets_of(cases: Sequence[Case]) -> Iterator[Target]:
    """A target for each kind of hard case."""
    for name in dict.fromkeys(case.target for case in cases):
        mine = [case for case in cases if case.target == name]
        compared = at_most if mine[0].at_most else at_least
        yield compared(name, mine[0].bound, [Found(case.where, case.rate) for case in mine])
