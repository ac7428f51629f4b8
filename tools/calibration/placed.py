"""A host that slows down within each block, corrected by the declared place in the block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np

from tools.calibration.case import Case, quiet
from tools.calibration.error_rates import Rate
from tools.calibration.hard_cases import ALPHA
from tools.calibration.truths import STANDARD, Truth, draw, linear, steady
from vnuma.analysis.cells import Grid
from vnuma.analysis.compare import Comparison, compare
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.fit import Place, terms
from vnuma.domain.study.order import latin_square, williams_square
from vnuma.domain.study.study import Order

EFFECT = math.log(1.01)
QUIET = replace(STANDARD, iterations=quiet)
"""Boots of the standard SD, iterations of 0.3%."""
NOISY = (1.0, 1.0, 1.0, 1.0, 1.0, 2.0)


def placed_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Linear drift in random order with the covariate declared; squares under drift."""
    for blocks, drift, spread in ((6, 0.0, ()), (8, 0.0, ()), (6, 0.2, ()), (8, 0.2, ()), (8, 0.2, NOISY)):
        truth = replace(QUIET, spread=spread, trend=linear(drift))
        where = f"drift {drift * 100:g}%, B = {blocks}{', one SD x 2' if spread else ''}"
        yield from _cases("place as covariate", where, _random(truth, blocks, studies, generator))
    orders: tuple[Order, ...] = ("latin_square", "williams")
    for order in orders:
        for blocks, drift in ((6, 0.1), (12, 0.2)):
            where = f"{order.replace('_', ' ')}, drift {drift * 100:g}%, B = {blocks}"
            yield from _cases("squares", where, _squares(order, drift, blocks, studies, generator))


def _cases(what: str, where: str, found: list[Comparison]) -> Iterator[Case]:
    """Family-wise error, and the power for 1% where possible."""
    limits = np.array(
        [
            [(c.log_ratio or 0.0, c.inference.half_width if c.inference else np.inf) for c in one.contrasts]
            for one in found
        ]
    )
    wrong = (np.abs(limits[..., 0]) > limits[..., 1]).any(axis=1)
    yield Case(f"family-wise error, {what}", where, 0.05, Rate.of(wrong))
    slower = limits[..., 0] + EFFECT > limits[..., 1]
    yield Case(f"power for 1%, {what}", where, 0.55, Rate.of(slower), at_most=False)


def _random(truth: Truth, blocks: int, studies: int, generator: np.random.Generator) -> list[Comparison]:
    drawn = draw(truth, blocks, studies, generator)
    return _compared(truth, drawn.cells, drawn.places.astype(np.float64), "linear")


def _squares(
    order: Order, drift: float, blocks: int, studies: int, generator: np.random.Generator
) -> list[Comparison]:
    k = QUIET.columns
    drawn = draw(replace(QUIET, trend=steady), blocks, studies, generator).cells
    shuffle = Random(int(generator.integers(2**31)))
    square = latin_square if order == "latin_square" else williams_square
    places = np.empty((studies, blocks, k))
    for study in range(studies):
        rows = [row for _ in range(0, blocks, k) for row in square(k, shuffle)][:blocks]
        places[study] = np.argsort(np.array(rows), axis=1)
    when = np.arange(blocks)[:, None] * k + places
    return _compared(QUIET, drawn + drift * when / (blocks * k - 1), places, "factor")


def _compared(truth: Truth, y: FloatArray, places: FloatArray, place: Place) -> list[Comparison]:
    labels = tuple(map(str, range(truth.columns)))
    arms = {label: label for label in labels[truth.references :]}
    grids = (
        Grid(labels, tuple(range(y.shape[1])), cells, terms(at, place, truth.columns))
        for cells, at in zip(y, places, strict=True)
    )
    return [compare(grid, labels[: truth.references], arms, ALPHA) for grid in grids]
