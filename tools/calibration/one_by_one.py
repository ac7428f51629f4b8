"""What the vectorised rule leaves out of studies whose arms leave: missing cells, place, control, A/A alarm.

Each study goes through the product's own look, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tools.calibration.case import Case
from tools.calibration.error_rates import MARGIN, Rate, some_arm
from tools.calibration.truths import STANDARD, Truth, draw, linear
from vnuma.analysis.cells import Grid
from vnuma.analysis.checks import AA_ALARM, AaCheck, check_a_a, check_control
from vnuma.analysis.compare import Comparison, compare
from vnuma.analysis.conclusions import near_best
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.fit import terms
from vnuma.analysis.records import PositiveControl
from vnuma.analysis.stopping import FIRST_LOOK, RepeatedLooks
from vnuma.analysis.verdict import Label, decide, rules_for

MOST = 12
ALPHA = 0.05
ANY_WRONG = 0.06
_CONTROL = str(STANDARD.columns - 1)
BAND = math.log1p(MARGIN)
_NAMED = {"reference": ("0", "1"), **{str(arm): (str(arm),) for arm in range(2, STANDARD.columns)}}


@dataclass(frozen=True)
class One:
    """How one study ended: the verdict of each arm that left, and the A/A check at the end."""

    words: dict[str, Label]
    a_a: AaCheck | None


def one_by_one_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Studies without any effect, but for a positive control that is found or not."""
    gaps = draw(STANDARD, MOST, studies, generator).cells
    gaps[generator.random(gaps.shape) < 0.10] = np.nan
    yield _wrong("10% of the cells missing", [run_one(y) for y in gaps])
    drifting = replace(STANDARD, trend=linear(0.10))
    drawn = draw(drifting, MOST, studies, generator)
    placed = zip(drawn.cells, drawn.places.astype(np.float64), strict=True)
    yield _wrong("drift 10%, place as covariate", [run_one(y, at) for y, at in placed])
    plain = [run_one(y) for y in draw(STANDARD, MOST, studies, generator).cells]
    yield _wrong("product's own look", plain)
    alarms = np.array([one.a_a is not None and one.a_a.p < AA_ALARM for one in plain])
    yield Case("A/A alarms, stop: decided", "no effect", AA_ALARM, Rate.of(alarms))
    yield from _used(studies, generator)
    for effect, found in ((0.0, False), (0.10, True)):
        y = draw(STANDARD, MOST, studies, generator).cells
        y[:, :, -1] += math.log1p(effect)
        ended = [run_one(cells, control=True) for cells in y]
        equal = np.array(
            [[one.words.get(str(c)) is Label.EQUIVALENT for c in range(2, 5)] for one in ended], dtype=bool
        )
        if found:
            yield Case("equivalent, control found", "10%", 0.80, Rate.of(equal), at_most=False)
        else:
            yield Case("equivalent, control without effect", "0%", ANY_WRONG, Rate.of(some_arm(equal)))


def _used(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Which arm may be used and lose at most the margin: with equal arms, and with all that far behind."""
    for blocks, answered in ((8, 0.90), (12, 0.95)):
        for behind in (0.0, MARGIN):
            y = draw(STANDARD, blocks, studies, generator).cells
            y[:, :, STANDARD.references :] += math.log1p(behind)
            named = [near_best(_compared(cells, None, STANDARD, repeated=False), _NAMED, BAND) for cells in y]
            where = f"B = {blocks}"
            if behind:
                wrong = np.array([any(arm != "reference" for arm in arms) for arms in named])
                yield Case("named though 1% behind the best", where, 0.05, Rate.of(wrong))
            else:
                rate = Rate.of(np.array([bool(arms) for arms in named]))
                yield Case("an arm to use, all equal", where, answered, rate, at_most=False)


def _wrong(where: str, ended: list[One]) -> Case:
    wrong = [any(word is not Label.EQUIVALENT for word in one.words.values()) for one in ended]
    return Case("wrong verdicts one by one, stop: decided", where, ANY_WRONG, Rate.of(np.array(wrong)))


def run_one(y: FloatArray, places: FloatArray | None = None, *, control: bool = False) -> One:
    """Look at one study after each block, as the product does. NaN: a cell that was given up."""
    y = y.copy()
    words: dict[str, Label] = {}
    for block in range(FIRST_LOOK, MOST + 1):
        compared = _compared(y[:block], None if places is None else places[:block], STANDARD)
        found = _look(compared, control=control)
        leave = {arm: word for arm, word in found.items() if arm not in words}
        words |= leave
        for arm in leave:
            y[block:, int(arm)] = np.nan
        if len(words) == STANDARD.arms:
            break
    check = check_a_a(_compared(y[:block], None if places is None else places[:block], STANDARD))
    return One(words, check if isinstance(check, AaCheck) else None)


def _look(compared: Comparison, *, control: bool) -> dict[str, Label]:
    declared = PositiveControl(_CONTROL) if control else None
    check = check_control(declared, compared.contrasts, least=FIRST_LOOK)
    rules = replace(rules_for(MARGIN, None, check), least=FIRST_LOOK)
    said = {item.label: decide(item, rules, ALPHA).label for item in compared.contrasts}
    return {arm: word for arm, word in said.items() if word in (Label.SLOWER, Label.FASTER, Label.EQUIVALENT)}


def _compared(y: FloatArray, places: FloatArray | None, truth: Truth, *, repeated: bool = True) -> Comparison:
    labels = tuple(map(str, range(truth.columns)))
    x = None if places is None else terms(places, "linear", truth.columns)
    rows = np.flatnonzero(~np.isnan(y).all(axis=1))
    grid = Grid(labels, tuple(map(int, rows)), y[rows], None if x is None else x[rows])
    looks = RepeatedLooks(ALPHA, truth.arms, MOST) if repeated else None
    arms = {label: label for label in labels[truth.references :]}
    return compare(grid, labels[: truth.references], arms, ALPHA, looks=looks)
