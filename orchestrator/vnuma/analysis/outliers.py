"""Odd boots are flagged and kept: bimodality is real, and trimming boots would hide it.

Also decides what may be stated with odd boots, and without any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vnuma.analysis.distributions import FloatArray, beta_quantile
from vnuma.analysis.fit import Fit
from vnuma.analysis.records import NotEvaluated

MAD_TO_SD = 1.4826
CUT = 4.0
STUDIES = 4000
SEED = 20190601


@dataclass(frozen=True)
class OddCell:
    """A cell whose residual (ln scale) exceeds the limit.

    `shift`: its distance from where it would otherwise be; it is larger than the residual, since the cell
    also moves the means of its column and block.
    """

    label: str
    block: int
    residual: float
    limit: float
    shift: float


@dataclass(frozen=True)
class Bimodality:
    """Largest share of the residuals' variance that a split into two groups explains.

    `critical` is its simulated 99% point for normal data. A negative result proves nothing: with 8 blocks the
    test detects 6 to 28% of real mixtures.
    """

    share: float
    critical: float
    flagged: bool


def odd_cells(full: Fit) -> tuple[OddCell, ...]:
    """Cells with |R| > 4 x 1.4826 median|R| sqrt(Bk/df); falsely in 0.1 to 0.3% of studies."""
    limit = _limit(full)
    if limit is None or limit < 1e-12:
        return ()
    part = residual_part(*full.grid.y.shape)
    return tuple(
        OddCell(
            full.grid.labels[k],
            full.grid.blocks[b],
            float(full.residuals[b, k]),
            limit,
            float(full.residuals[b, k]) / part,
        )
        for b, k in zip(*np.nonzero(np.abs(np.nan_to_num(full.residuals)) > limit), strict=True)
    )


def odd_limit(sizes: FloatArray, df: int) -> FloatArray:
    """Per row of |residuals|: the limit beyond which a cell is odd."""
    scale = math.sqrt(sizes.shape[1] / df)
    return np.asarray(CUT * MAD_TO_SD * np.median(sizes, axis=1) * scale, dtype=np.float64)


def residual_part(blocks: int, columns: int) -> float:
    """The part of a cell's shift that its residual shows, in complete blocks."""
    return (1 - 1 / blocks) * (1 - 1 / columns)


def noticeable(full: Fit) -> float | None:
    """The smallest shift of one cell (ln scale) that makes it odd; None if unknown."""
    limit = _limit(full)
    return None if limit is None else limit / residual_part(*full.grid.y.shape)


@lru_cache(maxsize=4)
def _limit(full: Fit) -> float | None:
    """Beyond which a residual is odd; None without degrees of freedom."""
    sizes = np.abs(full.residuals[~np.isnan(full.residuals)])
    return float(odd_limit(sizes[None, :], full.df)[0]) if full.df > 0 else None


def share_limit(seen: int, boots: int) -> float:
    """The exact upper 95% limit of the share of boots in a state that `seen` of `boots` were in.

    C. J. Clopper, E. S. Pearson 1934, Biometrika 26:404; 1 - 0.05^(1/n) for none: 31.2% after 8 boots.
    """
    return 1.0 if seen >= boots else beta_quantile(0.95, seen + 1, boots - seen)


def is_rare(odd: int, boots: int) -> bool:
    """Whether so few boots are odd (at most a tenth) that a verdict may be about the rest.

    With heavy tails some boot is odd sooner or later: a single one does not make a second state.
    """
    return odd * 10 <= boots


def bimodality(full: Fit) -> Bimodality | NotEvaluated:
    """Compare the best two-group split of the residuals with that of simulated normal cells."""
    if full.df < 3 or full.rss == 0:
        return NotEvaluated("too few cells, or no variation, to look for two groups")
    present = ~np.isnan(full.grid.y)
    share = float(best_split(full.residuals[present][None, :])[0])
    x = np.zeros((*present.shape, 0)) if full.places is None else np.nan_to_num(np.asarray(full.places.raw.x))
    critical = _critical(present.shape, present.tobytes(), x.tobytes())
    return Bimodality(share, critical, share > critical)


def best_split(residuals: FloatArray) -> FloatArray:
    """Per row: the largest between-group share of the sum of squares over all splits of sorted values."""
    r = np.sort(residuals - residuals.mean(axis=1, keepdims=True), axis=1)
    n = r.shape[1]
    left = np.cumsum(r, axis=1)[:, :-1]
    size = np.arange(1, n)
    between = left**2 * n / (size * (n - size))
    return np.asarray(between.max(axis=1) / (r**2).sum(axis=1), dtype=np.float64)


@lru_cache(maxsize=64)
def _critical(shape: tuple[int, int], pattern: bytes, covariates: bytes) -> float:
    """The 99% point for this pattern of cells and their covariates: residuals of N(0,1) cells, seeded."""
    present = np.frombuffer(pattern, dtype=bool).reshape(shape)
    rows, columns = np.nonzero(present)
    design = np.zeros((len(rows), shape[0] + shape[1]))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), shape[0] + columns] = 1
    x = np.frombuffer(covariates).reshape(*shape, -1)[rows, columns] if covariates else design[:, :0]
    design = np.hstack([design, x])
    basis, values, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, values > 1e-9]
    z = np.random.default_rng(SEED).standard_normal((STUDIES, len(rows)))
    return float(np.quantile(best_split(z - (z @ basis) @ basis.T), 0.99))
