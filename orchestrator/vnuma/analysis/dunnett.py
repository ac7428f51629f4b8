"""Dunnett's two-sided many-to-one probability and constant, by quadrature.

C. W. Dunnett 1955, JASA 50:1096; with f the density of s = sqrt(chi2(df)/df),

    G(c) = integral f(s) integral phi(z) [Phi((cs + sqrt(rho) z)/sqrt(1-rho))
                                          - Phi((-cs + sqrt(rho) z)/sqrt(1-rho))]^p dz ds

Gauss-Legendre (240 points) in s between the 1e-15 quantiles, Gauss-Hermite (120) in z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from vnuma.analysis import distributions

TAIL = 1e-15
NOTHING = 1e-20
"""A smaller weight is lost in the rounding of a probability."""


def probability(c: float, p: int, df: float, rho: float) -> float:
    """G(c) = P(all p |t| <= c): joint coverage of p contrasts with common correlation `rho`."""
    if c <= 0:
        return 0.0
    if p == 1:
        return 1.0 - distributions.t_two_sided(c, df)
    s, weight_s = _scale_nodes(df)
    z, weight_z = _normal_nodes()
    shift = math.sqrt(rho) * z[None, :]
    width = c * s[:, None]
    root = math.sqrt(1.0 - rho)
    inside = distributions.normal_cdf((width + shift) / root) - distributions.normal_cdf(
        (shift - width) / root
    )
    return float(weight_s @ (inside**p @ weight_z))


@lru_cache(maxsize=512)
def constant(alpha: float, p: int, df: float, rho: float) -> float:
    """The c with G(c) = 1 - alpha: half-widths are c times the standard error."""
    if p == 1:
        return distributions.t_quantile(1.0 - alpha / 2, df)
    low = distributions.t_quantile(1.0 - alpha / 2, df)
    high = distributions.t_quantile(1.0 - alpha / (2 * p), df)
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


def adjusted_p(t: float, p: int, df: float, rho: float) -> float:
    """Single-step adjusted p value 1 - G(|t|): below alpha exactly when the interval excludes zero."""
    if p == 1:
        return distributions.t_two_sided(t, df)
    if math.isinf(t):
        return 0.0
    return min(1.0, max(0.0, 1.0 - probability(abs(t), p, df, rho)))


@lru_cache(maxsize=512)
def _scale_nodes(df: float) -> tuple[distributions.FloatArray, distributions.FloatArray]:
    """Nodes in s, and weights that contain the density of sqrt(chi2(df)/df)."""
    low = math.sqrt(distributions.chi2_quantile(TAIL, df) / df)
    high = math.sqrt(distributions.chi2_upper_quantile(TAIL, df) / df)
    x, w = distributions.legendre_nodes(240)
    s = low + (high - low) * (x + 1) / 2
    log_norm = math.log(2) + df / 2 * math.log(df / 2) - distributions.log_gamma(df / 2)
    density = np.exp(log_norm + (df - 1) * np.log(s) - df * s**2 / 2)
    return s, w * (high - low) / 2 * density


@lru_cache(maxsize=1)
def _normal_nodes() -> tuple[distributions.FloatArray, distributions.FloatArray]:
    """Nodes and weights for the expectation of an even function of a standard normal.

    The bracket of G is the same for z and -z, so negative nodes are folded onto positive ones. Nodes with
    negligible total weight are left out.
    """
    x, w = np.polynomial.hermite.hermgauss(120)
    z, weight = x * math.sqrt(2), 2 * w / math.sqrt(math.pi)
    kept = (z > 0) & (weight > NOTHING)
    return z[kept], weight[kept]
