"""Quantiles and tails of t, F, chi-square and the normal: the only place that calls scipy.special.

`scipy.stats` would give the same numbers, but its import alone takes more than a second. `scipy.special` is
loaded at its first use: most commands have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@lru_cache(maxsize=1024)
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


@lru_cache(maxsize=1024)
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


TAIL = 1e-15
NOTHING = 1e-20
"""A smaller weight is lost in the rounding of a probability."""


def probability(c: float, p: int, df: float, rho: float) -> float:
    """G(c) = P(all p |t| <= c): joint coverage of p contrasts with common correlation `rho`."""
    if c <= 0:
        return 0.0
    if p == 1:
        return 1.0 - t_two_sided(c, df)
    s, weight_s = _scale_nodes(df)
    z, weight_z = _normal_nodes()
    shift = math.sqrt(rho) * z[None, :]
    width = c * s[:, None]
    root = math.sqrt(1.0 - rho)
    inside = normal_cdf((width + shift) / root) - normal_cdf((shift - width) / root)
    return float(weight_s @ (inside**p @ weight_z))


@lru_cache(maxsize=512)
def dunnett_constant(alpha: float, p: int, df: float, rho: float) -> float:
    """The c with G(c) = 1 - alpha: half-widths are c times the standard error."""
    if p == 1:
        return t_quantile(1.0 - alpha / 2, df)
    low = t_quantile(1.0 - alpha / 2, df)
    high = t_quantile(1.0 - alpha / (2 * p), df)
    # A single contrast has a smaller constant and Bonferroni a larger one, so it lies between.
    return _root(lambda c: probability(c, p, df, rho) - (1.0 - alpha), low * 0.999, high * 1.001)


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where `f` rises through zero between `low` and `high`, to 1e-12: regula falsi, Illinois variant.

    scipy.optimize has an equivalent, but its import takes longer than everything else for a verdict.
    """
    at_low, at_high = f(low), f(high)
    root = high
    for _ in range(100):
        last, root = root, (low * at_high - high * at_low) / (at_high - at_low)
        at_root = f(root)
        if at_root == 0 or abs(root - last) < 1e-12:
            return root
        if (at_root < 0) == (at_low < 0):
            low, at_low, at_high = root, at_root, at_high / (2 if last < root else 1)
        else:
            high, at_high, at_low = root, at_root, at_low / (2 if last > root else 1)
    return root


def dunnett_p(t: float, p: int, df: float, rho: float) -> float:
    """Single-step adjusted p value 1 - G(|t|): below alpha exactly when the interval excludes zero."""
    if p == 1:
        return t_two_sided(t, df)
    if math.isinf(t):
        return 0.0
    return min(1.0, max(0.0, 1.0 - probability(abs(t), p, df, rho)))


@lru_cache(maxsize=512)
def _scale_nodes(df: float) -> tuple[FloatArray, FloatArray]:
    """Nodes in s, and weights that contain the density of sqrt(chi2(df)/df)."""
    low = math.sqrt(chi2_quantile(TAIL, df) / df)
    high = math.sqrt(chi2_upper_quantile(TAIL, df) / df)
    x, w = legendre_nodes(240)
    s = low + (high - low) * (x + 1) / 2
    log_norm = math.log(2) + df / 2 * math.log(df / 2) - log_gamma(df / 2)
    density = np.exp(log_norm + (df - 1) * np.log(s) - df * s**2 / 2)
    return s, w * (high - low) / 2 * density


@lru_cache(maxsize=1)
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for the expectation of an even function of a standard normal.

    The bracket of G is the same for z and -z, so negative nodes are folded onto positive ones. Nodes with
    negligible total weight are left out.
    """
    x, w = np.polynomial.hermite.hermgauss(120)
    z, weight = x * math.sqrt(2), 2 * w / math.sqrt(math.pi)
    kept = (z > 0) & (weight > NOTHING)
    return z[kept], weight[kept]
