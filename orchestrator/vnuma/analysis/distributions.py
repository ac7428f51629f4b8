"""Quantiles and tails of t, F, chi-square and the normal: the only place that calls scipy.special.

`scipy.stats` would give the same numbers, but its import alone takes more than a second. `scipy.special` is
loaded at its first use: most commands have none.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def t_quantile(probability: float, df: float) -> float:
    """Student's t quantile."""
    return float(scipy.special.stdtrit(df, probability))


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|)."""
    return float(2 * scipy.special.stdtr(df, -abs(t)))


def t_two_sided_each(t: FloatArray, df: NDArray[np.number]) -> FloatArray:
    """P(|T| >= |t|) of many values at once, each with its own df."""
    return np.asarray(2 * scipy.special.stdtr(df, -np.abs(t)), dtype=np.float64)


def t_upper(t: float, df: float) -> float:
    """P(T >= t)."""
    return float(scipy.special.stdtr(df, -t))


def f_quantile(probability: float, df1: float, df2: float) -> float:
    """F quantile."""
    return float(scipy.special.fdtri(df1, df2, probability))


def f_upper(f: float, df1: float, df2: float) -> float:
    """P(F >= f)."""
    return float(scipy.special.fdtrc(df1, df2, f))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Beta quantile."""
    return float(scipy.special.betaincinv(a, b, probability))


def chi2_quantile(probability: float, df: float) -> float:
    """Chi-square quantile, accurate in the lower tail."""
    return float(2 * scipy.special.gammaincinv(df / 2, probability))


def chi2_upper_quantile(probability: float, df: float) -> float:
    """The value that chi-square exceeds with that probability, accurate in the upper tail."""
    return float(2 * scipy.special.gammainccinv(df / 2, probability))


def normal_cdf(x: FloatArray) -> FloatArray:
    """Standard normal distribution function."""
    return np.asarray(scipy.special.ndtr(x), dtype=np.float64)


def normal_quantile(probability: float) -> float:
    """Standard normal quantile."""
    return float(scipy.special.ndtri(probability))


def t_quantile_each(probability: FloatArray | float, df: NDArray[np.number]) -> FloatArray:
    """Student's t quantile, each with its own df."""
    return np.asarray(scipy.special.stdtrit(df, probability), dtype=np.float64)


def f_quantile_each(probability: float, df1: NDArray[np.number], df2: NDArray[np.number]) -> FloatArray:
    """F quantile, each with its own degrees of freedom."""
    return np.asarray(scipy.special.fdtri(df1, df2, probability), dtype=np.float64)


@lru_cache(maxsize=4)
def legendre_nodes(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre quadrature on -1 to 1: an eigenvalue problem, solved once."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights


def noncentrality(power: float, t: float, df: float) -> float:
    """The noncentrality at which a noncentral t exceeds `t` with that probability."""
    return float(scipy.special.nctdtrinc(df, 1 - power, t))


def log_gamma(x: float) -> float:
    """Logarithm of the gamma function."""
    return float(scipy.special.gammaln(x))
