"""The place in the block as a declared covariate, which removes drift from the error.

Analysis of covariance (R. A. Fisher 1932, "Statistical Methods for Research Workers", section 49.1): columns
and blocks are removed from times and covariates, the times are regressed on the covariates, and every
contrast's variance grows with the difference of its columns' places. Squares balance places and have them as
a factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from vnuma.analysis.cells import Boot, Grid
from vnuma.analysis.distributions import FloatArray

Place = Literal["none", "linear", "factor"]


def with_places(grid: Grid, boots: Iterable[Boot], place: Place, columns: int) -> Grid:
    """The grid with its cells' places, as declared; without them if any is unknown.

    `columns`: how many were planned in each block. Positions count over the whole run, so that the remainder
    is the place even if cells are missing.
    """
    if place == "none":
        return grid
    known: Mapping[tuple[int, str], int] = {
        (boot.block, boot.label): boot.position for boot in boots if boot.position is not None
    }
    at = np.full(grid.y.shape, np.nan)
    for b, block in enumerate(grid.blocks):
        for k, label in enumerate(grid.labels):
            at[b, k] = known.get((block, label), np.nan) - columns * (block - 1)
    present = ~np.isnan(grid.y)
    if np.isnan(at[present]).any():
        return grid
    at[~present] = np.nan
    return grid.at(terms(at, place, columns))


def terms(at: FloatArray, place: Place, columns: int) -> FloatArray:
    """Covariates of cells at these places of their blocks, NaN where a cell is missing."""
    if place == "linear":
        return (at / columns)[..., None]
    places = at - np.nanmin(at)
    if np.nanmax(places) >= columns:  # positions of columns without cells on this VM: count what was run
        places = np.where(np.isnan(at), np.nan, np.argsort(np.argsort(at, axis=1), axis=1))
    terms = [np.where(np.isnan(at), np.nan, places == level) for level in range(1, columns)]
    return np.stack(terms, axis=-1) if terms else np.empty((*at.shape, 0))
