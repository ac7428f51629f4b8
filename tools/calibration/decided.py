"""Studies whose arms leave when they are decided: wrong verdicts under hard truths, boots to a verdict.

What the vectorised rule leaves out (missing cells, place, control, A/A alarm) goes through the product's own
look, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from tools.calibration.error_rates import (
    ALPHA,
    BAND,
    MARGIN,
    Rate,
    compared,
    found_faster,
    found_slower,
    some_arm,
    within_band,
)
from tools.calibration.targets import Case
from tools.calibration.truths import SD, STANDARD, Truth, course, draw, heavy, linear, lognormal, with_sd
from vnuma.analysis.checks import AA_ALARM, AaCheck, check_a_a, check_control
from vnuma.analysis.compare import Comparison
from vnuma.analysis.conclusions import near_best
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.records import PositiveControl
from vnuma.analysis.simulate import BoolArray, Simulated, run_decided
from vnuma.analysis.stopping import FIRST_LOOK, RepeatedLooks, first_look
from vnuma.analysis.variance import cell_sd
from vnuma.analysis.verdict import Label, decide, rules_for
from vnuma.report.model.grid import GridTable

MOST_ONE_BY_ONE = 12
_CONTROL = str(STANDARD.columns - 1)
_NAMED = {"reference": ("0", "1"), **{str(arm): (str(arm),) for arm in range(2, STANDARD.columns)}}


Ended = tuple[dict[str, Label], AaCheck | None]
"""How one study ended: the verdict of each arm that left, and the A/A check at the end."""


def one_by_one_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Studies without any effect, but for a positive control that is found or not."""
    gaps = draw(STANDARD, MOST_ONE_BY_ONE, studies, generator).cells
    gaps[generator.random(gaps.shape) < 0.10] = np.nan
    yield _wrong_one_by_one("10% of the cells missing", [run_one(y) for y in gaps])
    drifting = replace(STANDARD, trend=linear(0.10))
    drawn = draw(drifting, MOST_ONE_BY_ONE, studies, generator)
    placed = zip(drawn.cells, drawn.places.astype(np.float64), strict=True)
    yield _wrong_one_by_one("drift 10%, place as covariate", [run_one(y, at) for y, at in placed])
    plain = [run_one(y) for y in draw(STANDARD, MOST_ONE_BY_ONE, studies, generator).cells]
    yield _wrong_one_by_one("product's own look", plain)
    alarms = np.array([check is not None and check.p < AA_ALARM for _, check in plain])
    yield Case("A/A alarms, stop: decided", "no effect", AA_ALARM, Rate.of(alarms))
    yield from _used(studies, generator)
    for effect, found in ((0.0, False), (0.10, True)):
        y = draw(STANDARD, MOST_ONE_BY_ONE, studies, generator).cells
        y[:, :, -1] += math.log1p(effect)
        ended = [run_one(cells, control=True) for cells in y]
        equal = np.array(
            [[words.get(str(c)) is Label.EQUIVALENT for c in range(2, 5)] for words, _ in ended], dtype=bool
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
            named = [near_best(compared(cells, STANDARD), _NAMED, BAND) for cells in y]
            where = f"B = {blocks}"
            if behind:
                wrong = np.array([any(arm != "reference" for arm in arms) for arms in named])
                yield Case("named though 1% behind the best", where, 0.05, Rate.of(wrong))
            else:
                rate = Rate.of(np.array([bool(arms) for arms in named]))
                yield Case("an arm to use, all equal", where, answered, rate, at_most=False)


def _wrong_one_by_one(where: str, ended: list[Ended]) -> Case:
    wrong = [any(word is not Label.EQUIVALENT for word in words.values()) for words, _ in ended]
    return Case("wrong verdicts one by one, stop: decided", where, ANY_WRONG, Rate.of(np.array(wrong)))


def run_one(y: FloatArray, places: FloatArray | None = None, *, control: bool = False) -> Ended:
    """Look at one study after each block, as the product does. NaN: a cell that was given up."""
    y = y.copy()
    words: dict[str, Label] = {}
    looks = RepeatedLooks(ALPHA, STANDARD.arms, MOST_ONE_BY_ONE)

    def at(block: int) -> Comparison:
        return compared(y[:block], STANDARD, places=None if places is None else places[:block], looks=looks)

    for block in range(FIRST_LOOK, MOST_ONE_BY_ONE + 1):
        found = _look(at(block), control=control)
        leave = {arm: word for arm, word in found.items() if arm not in words}
        words |= leave
        for arm in leave:
            y[block:, int(arm)] = np.nan
        if len(words) == STANDARD.arms:
            break
    check = check_a_a(at(block))
    return words, check if isinstance(check, AaCheck) else None


def _look(found: Comparison, *, control: bool) -> dict[str, Label]:
    declared = PositiveControl(_CONTROL) if control else None
    check = check_control(declared, found.contrasts, least=FIRST_LOOK)
    rules = replace(rules_for(MARGIN, None, check), least=FIRST_LOOK)
    said = {item.label: decide(item, rules, ALPHA).label for item in found.contrasts}
    return {arm: word for arm, word in said.items() if word in (Label.SLOWER, Label.FASTER, Label.EQUIVALENT)}


MOST = 24
ANY_WRONG = 0.06
"""The bound for any wrong verdict in a study, in every truth."""
PRECISION = 0.005


def decided_cases(studies: int, few: int, generator: np.random.Generator) -> Iterator[Case]:
    """Every truth without an effect and with all arms at exactly 1%; runs that are stopped somewhere."""
    each = iter(generator.spawn(3))
    for truth in _HARD:
        for effect in (0.0, MARGIN):
            where = f"{truth.name}, {'no effect' if not effect else 'all arms at 1%'}"
            y = draw(truth, MOST, studies, generator).cells
            yield Case("wrong verdicts, stop: decided", where, ANY_WRONG, Rate.of(_wrong(y, truth, effect)))
    for most, sd in ((12, 0.01), (12, 0.02), (24, 0.01), (24, 0.02)):
        truth = with_sd(sd)
        y = draw(truth, most, studies, next(each) if (most, sd) == (12, 0.01) else generator).cells
        where = f"boots' SD {sd * 100:g}%, at most {most} blocks"
        yield Case("wrong verdicts, stop: decided", where, ANY_WRONG, Rate.of(_wrong(y, truth, 0.0)))
    yield from _stopped(studies, next(each))
    yield from one_by_one_cases(few, next(each))


_HARD = (
    STANDARD,
    replace(STANDARD, name="one arm's SD x 3", spread=(*[1.0] * 5, 3.0)),
    replace(STANDARD, name="reference's SD x 3", spread=(3.0, 3.0, *[1.0] * 4)),
    replace(STANDARD, name="t with 3 df", boots=heavy),
    replace(STANDARD, name="lognormal boots", boots=lognormal),
    replace(STANDARD, name="drift 20% over all boots", trend=linear(0.20)),
    replace(STANDARD, name="a step of 5% at boot 30", trend=course(lambda boot: 0.05 * (boot >= 30))),
    replace(
        STANDARD,
        name="sine 5%, 48 boots a period",
        trend=course(lambda boot: 0.05 * np.sin(2 * math.pi * boot / 48)),
    ),
    replace(
        STANDARD,
        name="boots 20 to 23 10% slower",
        trend=course(lambda boot: 0.10 * ((boot >= 20) & (boot <= 23))),
    ),
    replace(STANDARD, name="1 arm with A/A", arms=1),
    replace(STANDARD, name="1 arm with A/A, its SD x 3", arms=1, spread=(1.0, 1.0, 3.0)),
    replace(STANDARD, name="8 arms with A/A", arms=8),
    replace(STANDARD, name="4 arms, no A/A", references=1),
)


def _wrong(y: FloatArray, truth: Truth, effect: float) -> BoolArray:
    """Per study: whether some arm's verdict is wrong where each is slower by `effect`."""
    y[:, :, truth.references :] += math.log1p(effect)
    found = run_decided(y, truth.references, BAND)
    wrong = found.is_word("faster") | (found.is_word("equivalent") if effect else found.is_word("slower"))
    return some_arm(wrong)


def _stopped(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """A run without any effect that somebody stops after a block between the first look and the last."""
    y = draw(STANDARD, MOST, studies, generator).cells
    found = run_decided(y, STANDARD.references, BAND)
    until = generator.integers(FIRST_LOOK, MOST + 1, size=studies)[:, None]
    wrong = (found.is_word("slower") | found.is_word("faster")) & (found.after <= until)
    yield Case("wrong verdicts, stopped at any block", "no effect", ANY_WRONG, Rate.of(some_arm(wrong)))


EFFECTS = (
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.005, 0.01, 0.03),
    (0.005, 0.017, 0.023, 0.03),
    (0.03, 0.03, 0.03, 0.03),
    (0.10, 0.10, 0.10, 0.10),
)
BOOT_SDS = (0.003, 0.005, 0.01)
USUAL_BLOCKS = 8
WANTED = 0.90


def boots_table(studies: int, generator: np.random.Generator) -> GridTable:
    """Boots to a verdict for every truth at every spread: fixed, precision and decided beside the bound.

    The mean, and the share of studies in which every verdict is right.
    """
    headings = (
        "arms slower by, %",
        "SD of boots, %",
        "right with 48 boots, %",
        "fixed, 90% right: boots",
        "precision 0.5%: boots, right %",
        "decided: boots, right %",
        "lower bound",
    )
    rows = tuple(_boots(effects, boot_sd, studies, generator) for effects in EFFECTS for boot_sd in BOOT_SDS)
    most = MOST * STANDARD.columns
    return GridTable(f"Boots to the verdicts of four arms (A/A, at most {most} boots)", headings, rows)


def _boots(
    effects: tuple[float, ...], boot_sd: float, studies: int, generator: np.random.Generator
) -> tuple[str, ...]:
    truth = with_sd(boot_sd)
    y = draw(truth, MOST, studies, generator).cells
    y[:, :, truth.references :] += np.log1p(np.array(effects))
    right = partial(_right, effects=effects)
    found = run_decided(y, truth.references, BAND)
    decided = right(found.is_word("equivalent"), found.is_word("slower")).mean()
    at = {blocks: float(_fixed(y[:, :blocks], right).mean()) for blocks in range(6, MOST + 1)}
    fixed = next((blocks * truth.columns for blocks, share in at.items() if share >= WANTED), None)
    boots, precise = _precise(y, right)
    return (
        "/".join(f"{effect * 100:g}" for effect in effects),
        f"{boot_sd * 100:g}",
        f"{at[USUAL_BLOCKS] * 100:.0f}",
        f"{fixed}" if fixed else f"> {MOST * truth.columns}",
        f"{boots:.0f}, {precise * 100:.0f}",
        f"{found.boots.mean():.0f}, {decided * 100:.0f}",
        f"{lower_bound(effects, cell_sd(boot_sd, SD, 3)):.0f}",
    )


Right = Callable[[BoolArray, BoolArray], BoolArray]


def _right(equivalent: BoolArray, slower: BoolArray, *, effects: tuple[float, ...]) -> BoolArray:
    """Per study: whether every arm has a verdict, and the right one. Below the margin both may be right."""
    truth = np.array(effects)
    return np.asarray(((equivalent & (truth < MARGIN)) | (slower & (truth > 0))).all(axis=1))


def _fixed(y: FloatArray, right: Right) -> BoolArray:
    found = Simulated(y, STANDARD.references)
    equivalent = within_band(found)
    return right(equivalent, ~equivalent & found_slower(found, 0.0) & ~found_faster(found, 0.0))


def _precise(y: FloatArray, right: Right) -> tuple[float, float]:
    """Boots and right studies of the precision rule."""
    ended = np.full(len(y), MOST)
    for blocks in range(MOST - 1, first_look(STANDARD.columns) - 1, -1):
        widest = Simulated(y[:, :blocks], STANDARD.references).half_width_95.max(axis=1)
        ended[widest <= math.log1p(PRECISION)] = blocks
    each = {int(blocks): _fixed(y[:, :blocks], right) for blocks in np.unique(ended)}
    good = [each[int(blocks)][study] for study, blocks in enumerate(ended)]
    return float(ended.mean() * STANDARD.columns), float(np.mean(good))


def lower_bound(effects: tuple[float, ...], sd: float) -> float:
    """Boots that any method needs on average which is wrong about an arm in at most 5% of studies.

    With known variance: the least sum of n with 1/n_j + 1/n_0 <= d_j^2 / (2 sd^2 ln(1 / (2.4 * 0.05))), with
    d_j the distance to the nearest truth for which the verdict would be wrong (A. Garivier, E. Kaufmann 2016,
    COLT).
    """
    distance = [BAND if not e else max(abs(math.log1p(e)), BAND - math.log1p(e)) for e in effects]
    most = [d * d / (2 * sd * sd * math.log(1 / 0.12)) for d in distance]

    def boots(log_n: float) -> float:
        n = math.exp(log_n)
        left = [limit - 1 / n for limit in most]
        return n + sum(1 / x for x in left) if min(left) > 0 else math.inf

    low = math.log(1 / min(most)) + 1e-6
    return float(minimize_scalar(boots, bounds=(low, low + 6), method="bounded").fun)
