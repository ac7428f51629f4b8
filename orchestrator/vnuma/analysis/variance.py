"""The sources of noise, between boots or within them, and the consequence for iterations."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vnuma.analysis.cells import Boot
from vnuma.analysis.distributions import chi2_quantile, legendre_nodes, log_gamma, normal_cdf

PILOT_QUANTILE = 0.20
ROBUST_QUANTILE = 0.05
"""A pilot's few cells do not show non-normal scatter, so its plans use a more distant bound."""


@dataclass(frozen=True)
class Noise:
    """SDs on the ln scale (0.005 is 0.5%). `cell_sd` is the SD of one cell, the unit of planning.

    `within_sd` is that of one iteration within its boot, `boot_sd` what remains between boots: zero when the
    iterations explain everything. None when it cannot be estimated.
    """

    cell_sd: float | None
    cell_sd_upper: float | None
    df: int
    within_sd: float | None
    boot_sd: float | None

    @property
    def boot_share(self) -> float | None:
        """The share of a cell's variance between boots, which more iterations cannot reduce.

        None when it cannot be estimated.
        """
        if not self.cell_sd or self.boot_sd is None:
            return None
        return min(1.0, (self.boot_sd / self.cell_sd) ** 2)


def cell_sd(boot_sd: float, within_sd: float, iterations: int, sizes: int = 1) -> float:
    """sigma = sqrt(sigma_boot^2 + c_m sigma_within^2 / S): sizes share the boot, not the iterations."""
    return math.sqrt(boot_sd**2 + median_variance(iterations) * within_sd**2 / sizes)


def pilot_upper(ms: float, df: int, quantile: float = PILOT_QUANTILE) -> float:
    """sigma_U^2 = MS df / chi2_0.20(df): plans based on it reach their power in 82 to 86% of pilots.

    Plans based on MS itself do in about half. Both for normal scatter: `ROBUST_QUANTILE`.
    """
    return ms * df / chi2_quantile(quantile, df)


@lru_cache(maxsize=64)
def median_variance(m: int) -> float:
    """c_m: variance of the median of m standard normal values; 1, 0.448671, 0.286834 for m = 1, 3, 5."""
    if m < 1:
        raise ValueError(f"a median needs at least one value, not {m}")
    x, w = legendre_nodes(400)
    x, w = 9.0 * x, 9.0 * w
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    below, above = normal_cdf(x), normal_cdf(-x)
    if m % 2:
        k = m // 2
        order = math.exp(log_gamma(m + 1) - 2 * log_gamma(k + 1))
        return float(order * (w * x**2 * below**k * above**k * density).sum())
    # Even m: the mean of the two middle values u < v = u + gap, of joint density
    # m!/((k-1)!)^2 Phi(u)^(k-1) (1-Phi(v))^(k-1) phi(u) phi(v).
    k = m // 2
    order = math.exp(log_gamma(m + 1) - 2 * log_gamma(k))
    gap, v = x[None, :] + 9.0, x[:, None] + x[None, :] + 9.0
    upper = normal_cdf(-v) ** (k - 1) * np.exp(-(v**2) / 2) / math.sqrt(2 * math.pi)
    square = (x[:, None] + gap / 2) ** 2
    return float(order * ((w * density * below ** (k - 1))[:, None] * square * upper * w[None, :]).sum())


def noise(ms: float | None, df: int, boots: Sequence[Boot]) -> Noise:
    """Split the residual variance of a run into boot and iteration parts."""
    within = _within_variance(boots)
    sd = None if ms is None else math.sqrt(ms)
    upper = None if ms is None else math.sqrt(pilot_upper(ms, df))
    if ms is None or within is None:
        return Noise(sd, upper, df, None if within is None else math.sqrt(within), None)
    counts = [len(times) for boot in boots for times in boot.iterations]
    sizes = len(boots[0].iterations)
    share = statistics.fmean([median_variance(count) for count in counts]) * within / sizes
    return Noise(sd, upper, df, math.sqrt(within), math.sqrt(max(0.0, ms - share)))


def _within_variance(boots: Sequence[Boot]) -> float | None:
    """Pooled variance of ln(iteration) within boot and size; groups of equal number are computed together."""
    by_count: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for boot in boots:
        for times in boot.iterations:
            if min(times) > 0 and len(times) > 1:
                by_count[len(times)].append(times)
    square = sum(float(np.log(rows).var(axis=1).sum()) * count for count, rows in by_count.items())
    df = sum((count - 1) * len(rows) for count, rows in by_count.items())
    return square / df if df else None
