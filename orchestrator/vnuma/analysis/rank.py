"""The robust companion: Hodges-Lehmann with its exact interval, shown but not used for the verdict.

J. L. Hodges and E. L. Lehmann 1963, Annals of Mathematical Statistics 34:598; the interval is the inversion
of Wilcoxon's signed-rank test (J. W. Tukey's Walsh averages; Hollander and Wolfe, "Nonparametric Statistical
Methods", section 3.3).
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis.distributions import FloatArray


@dataclass(frozen=True)
class RankEstimate:
    """Hodges-Lehmann ratio, its exact interval with its coverage, and Wilcoxon's p."""

    ratio: float
    low: float
    high: float
    coverage: float
    p: float


def rank_estimate(differences: Sequence[float]) -> RankEstimate | None:
    """The estimate from within-block differences of logs; None with fewer than 6 of them."""
    walsh_rank = walsh_cut(len(differences))
    if walsh_rank is None:
        return None
    averages = walsh_averages(np.asarray(differences, dtype=np.float64))
    low, high = rank_limits(averages, walsh_rank)
    return RankEstimate(
        ratio=float(np.exp(statistics.median(averages.tolist()))),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        coverage=walsh_coverage(len(differences)),
        p=signed_rank_p(differences),
    )


def walsh_averages(differences: FloatArray) -> FloatArray:
    """Sorted means of all pairs i <= j, M = B(B+1)/2 of them, along the last axis."""
    i, j = _pairs(differences.shape[-1])
    return np.sort((differences[..., i] + differences[..., j]) / 2, axis=-1)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


def rank_limits(averages: FloatArray, cut: int) -> tuple[FloatArray, FloatArray]:
    """The interval's limits: Walsh averages c+1 and M-c (1-based), along the last axis."""
    return averages[..., cut], averages[..., averages.shape[-1] - 1 - cut]


@lru_cache(maxsize=256)
def walsh_cut(n: int) -> int | None:
    """c: the interval runs from Walsh average c+1 to M-c (1-based).

    None if n cannot reach 95%: fewer than 6.
    """
    tail = _tail(tuple(range(1, n + 1))) / 2.0**n
    allowed = np.flatnonzero(2 * tail <= 0.05)
    return int(allowed[-1]) if len(allowed) else None


@lru_cache(maxsize=256)
def walsh_coverage(n: int) -> float:
    """Exact coverage of that interval: 1 - 2 P(W <= c)."""
    cut = walsh_cut(n)
    if cut is None:
        raise ValueError(f"{n} differences are too few for a rank interval")
    return float(1 - 2 * _tail(tuple(range(1, n + 1)))[cut] / 2.0**n)


def signed_rank_p(differences: Sequence[float]) -> float:
    """Exact two-sided Wilcoxon p. Zeros are left out; tied sizes share their mean rank."""
    d = [x for x in differences if x != 0]
    if not d:
        return 1.0
    sizes = sorted(map(abs, d))
    # Doubled mid-ranks are integers, which keeps the count exact with ties.
    ranks = [bisect_left(sizes, abs(x)) + bisect_right(sizes, abs(x)) + 1 for x in d]
    positive = sum(rank for rank, x in zip(ranks, d, strict=True) if x > 0)
    smaller = min(positive, sum(ranks) - positive)
    return float(min(1.0, 2 * _tail(tuple(sorted(ranks)))[smaller] / 2.0 ** len(d)))


@lru_cache(maxsize=256)
def _tail(ranks: tuple[int, ...]) -> FloatArray:
    """Of the sign patterns of these ranks, how many have a sum of at most 0, 1, ..., that of all."""
    counts = np.zeros(sum(ranks) + 1)
    counts[0] = 1
    for rank in ranks:
        shifted = np.zeros_like(counts)
        shifted[rank:] = counts[: len(counts) - rank]
        counts = counts + shifted
    return np.cumsum(counts)
