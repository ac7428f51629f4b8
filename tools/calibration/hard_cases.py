"""Difficult cases from real runs, such as cells without a value, in addition to the standard truths.

Where the closed form does not apply, studies go through `compare` and `decide` one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from tools.calibration.error_rates import (
    ALPHA,
    BAND,
    MARGIN,
    Rate,
    any_found,
    compared,
    outcome,
    some_arm,
    within_band,
    words,
)
from tools.calibration.promised_power import kept_pilots
from tools.calibration.targets import Case
from tools.calibration.truths import (
    HEAVY,
    NOISY_ARM,
    SD,
    STANDARD,
    Studies,
    Truth,
    draw,
    linear,
    lognormal,
    normal,
    quiet,
    skewed,
    sometimes,
    steady,
    student,
    with_sd,
)
from vnuma.analysis.between_runs import LOOKED_AT_ALPHA, changes, pool
from vnuma.analysis.checks import AA_ALARM, MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Comparison, Contrast, Interval
from vnuma.analysis.distributions import FloatArray, t_quantile
from vnuma.analysis.outliers import share_limit
from vnuma.analysis.planning import blocks_for, ratio_for_width
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.rounding import clock_steps, rounding_of
from vnuma.analysis.simulate import BoolArray, Simulated, differences, run_decided
from vnuma.analysis.stopping import FIRST_LOOK
from vnuma.analysis.variance import cell_sd
from vnuma.analysis.verdict import Label, Rules, decide, run_withheld
from vnuma.domain.study.order import latin_square, williams_square
from vnuma.domain.study.study import Order

CLEAR_EFFECT, BEYOND = math.log(1.03), math.log(1.012)
_REFERENCE = "reference"
_RULES = Rules(MARGIN, None, control_failed=False)
ONE_BY_ONE = 10
"""One study in this many goes through the product's own functions: they take milliseconds each."""


def hard_cases(studies: int, generator: np.random.Generator) -> tuple[Case, ...]:
    """Every case, in the order of the table."""
    few = max(2, studies // ONE_BY_ONE)
    each = iter(generator.spawn(10))  # one stream each, so that a further case changes no other
    return (
        *_gaps(few, next(each)),
        *_coarse_clocks(3 * few, next(each)),
        *_one_arm(studies, next(each)),
        *_slow_states(studies, next(each)),
        *_published(studies, next(each)),
        *_between_runs(few, next(each)),
        *_stopped_by_hand(studies, next(each)),
        *_allocated(studies, next(each)),
        *_pooled(few, next(each)),
        *_noisy_reference(studies, next(each)),
    )


def _gaps(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """The A/A column has few cells, or a tenth of all cells is missing."""
    for held in (1, 2):
        y = draw(STANDARD, 8, studies, generator).cells
        y[:, held:, 1] = np.nan
        y[:, :, STANDARD.references :] += CLEAR_EFFECT
        slower = [[word is Label.SLOWER for word in _words(one)] for one in _each(y)]
        where = f"A/A valid in {held} of 8 blocks, arms 3% slower"
        yield Case("right verdicts with gaps", where, 0.98, Rate.of(np.array(slower)), at_most=False)
    for blocks in (6, 8):
        y = draw(STANDARD, blocks, studies, generator).cells
        y[generator.random(y.shape) < 0.10] = np.nan
        found = list(_each(y))
        wrong = np.array([_false(one) for one in found])
        thin = np.array([[_thin(one, arm) for arm in range(STANDARD.arms)] for one in found])
        where = f"10% of the cells missing, B = {blocks}"
        yield Case("family-wise error with gaps", where, 0.05, Rate.of(wrong))
        yield Case(f"verdicts on fewer than {MIN_BOOTS_FOR_VERDICT} pairs", where, 0.0, Rate.of(thin))


def _coarse_clocks(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Iterations rounded to the clock's steps, with 0.3% scatter of boots and iterations."""
    truth = replace(STANDARD, boots=quiet, iterations=quiet)
    for step, at in ((10, 300), (1, 30), (15.625, 300), (1, 300), (1, 1000)):
        where = f"steps of {step:g} ms at {at} ms"
        y = draw(truth, 8, studies, generator).times + generator.uniform(-0.1, 0.1, (studies, 1, 1, 1))
        y[:, :, truth.references :] += BEYOND
        found = [_rounded(times, at, step, truth) for times in y]
        equivalent = np.array([[word is Label.EQUIVALENT for word in _words(one)] for one in found])
        wrong = np.array([_false(one, BEYOND) for one in found])
        yield Case("false equivalent with a coarse clock", f"{where}, truly 1.2%", 0.05, Rate.of(equivalent))
        yield Case("family-wise error with a coarse clock", where, 0.05, Rate.of(wrong))


def _one_arm(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """A single arm and the reference's two columns, with equal or unequal scatter."""
    for name, spread in (("", ()), (", arm's SD x 2", (1, 1, 2)), (", reference's SD x 2", (2, 2, 1))):
        truth = replace(STANDARD, arms=1, spread=spread)
        for blocks in (6, 8, 12):
            found = outcome(draw(truth, blocks, studies, generator))
            where = f"one arm with A/A{name}, B = {blocks}"
            wrong = any_found(found)
            yield Case("family-wise error, one arm with A/A", where, 0.05, Rate.of(wrong))
            assert found.a_a_p is not None
            yield Case("A/A alarms, one arm", where, AA_ALARM, Rate.of(found.a_a_p < AA_ALARM))
    for blocks in (6, 8, 12):  # few boots do not show a skew: told in docs/statistics.md
        lopsided = replace(STANDARD, arms=1, boots=skewed, iterations=skewed, spread=(1, 1, 2))
        found = outcome(draw(lopsided, blocks, studies, generator))
        where = f"one skewed arm, SD x 2, B = {blocks}"
        yield Case("error of one skewed arm, not promised", where, 0.10, Rate.of(any_found(found)))
        false = some_arm(within_band(found, BAND))
        yield Case("equivalent at 1%, one skewed arm, not promised", where, 0.14, Rate.of(false))


def _slow_states(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """The last arm's boots are slow with some probability: seen, or unseen and reported as possible."""
    truth = replace(STANDARD, boots=quiet, iterations=quiet)
    for share, shift in ((0.10, 0.05), (0.10, 0.11), (0.10, 0.25)):  # one boot in ten, seen in some studies
        equivalent, slow, _ = _one_slow_arm(truth, 8, studies, share, shift, generator)
        where = f"{share * 100:g}% of one arm's boots {shift * 100:g}% slower, B = 8"
        seen = equivalent[slow.any(axis=1)]
        yield Case("equivalent although a slow boot was seen", where, 0.005, Rate.of(seen))
    for blocks in (6, 8, 12):
        share = share_limit(0, blocks)
        for shift in (0.04, 0.11):
            equivalent, _, told = _one_slow_arm(truth, blocks, studies, share, shift, generator)
            where = f"{share * 100:.0f}% of one arm's boots {shift * 100:g}% slower, B = {blocks}"
            yield Case("said to be rarer than it is", where, 0.05, Rate.of(equivalent & (told <= share)))


def _one_slow_arm(
    truth: Truth, blocks: int, studies: int, share: float, shift: float, generator: np.random.Generator
) -> tuple[BoolArray, BoolArray, FloatArray]:
    """Per study: whether the last arm is called equivalent, which of its boots were slow, the
    reported share.
    """
    drawn = draw(truth, blocks, studies, generator)
    slow = generator.random((studies, blocks)) < share
    drawn.times[:, :, -1] += math.log1p(shift) * slow[:, :, None]
    found = outcome(drawn)
    seen = (found.odd_arm[:, :, -1] > BAND).sum(axis=1)
    told = np.array([share_limit(number, blocks) for number in range(blocks + 1)])[seen]
    return within_band(found)[:, -1], slow, told


def _published(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """One boot of each arm published by others, of the same truth as ours."""
    for truth in (STANDARD, NOISY_ARM):
        for blocks in (6, 8, 12):
            drawn = draw(truth, blocks + 1, studies, generator).cells
            ours, theirs = Simulated(drawn[:, :blocks], truth.references), drawn[:, blocks]
            away = theirs[:, truth.references :] - theirs[:, [0]] - ours.estimate
            outside = np.abs(away) > prediction_width(ours)
            for arm in (0, truth.arms - 1):
                where = f"{truth.name}, arm {arm + 1}, B = {blocks}"
                yield Case("one published boot outside our range", where, 0.05, Rate.of(outside[:, arm]))


def _between_runs(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Two runs that differ only by a shift of all their figures."""
    for spread in (0.0, 0.002, 0.005, 0.01):
        shift = spread * generator.standard_normal((2, studies, 1, 1))
        runs = [draw(STANDARD, 8, studies, generator).cells + shift[one] for one in (0, 1)]
        wrong = [_changed(pair[:1], pair[1:]) for pair in zip(*runs, strict=True)]
        where = f"runs' SD {spread * 100:g}%, B = 8"
        yield Case("compare finds a change where there is none", where, 0.05, Rate.of(np.array(wrong)))
    yield from _scattering(studies, generator)
    yield from _left(studies, generator)


def _scattering(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Arms that scatter from run to run: two runs before, one after, and nothing changed between."""
    for arms, name in ((STANDARD.arms, "each arm"), (1, "one arm")):
        for spread in (0.002, 0.005):
            runs = draw(STANDARD, 8, 3 * studies, generator).cells.reshape(studies, 3, 8, STANDARD.columns)
            runs[..., STANDARD.references :][..., :arms] += spread * generator.standard_normal(
                (studies, 3, 1, arms)
            )
            wrong = [_changed([*each[:2]], [*each[2:]]) for each in runs]
            where = f"{name}'s SD between runs {spread * 100:g}%, A, A, B"
            yield Case("change found where arms scatter", where, 0.06, Rate.of(np.array(wrong)))


def _left(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Two runs from which arms left when they were decided."""
    for boot_sd in (0.005, 0.01):
        for effect in (0.0, 0.01, 0.02):
            y = draw(with_sd(boot_sd), 12, 2 * studies, generator).cells
            y[:, :, STANDARD.references :] += math.log1p(effect)
            after = run_decided(y, STANDARD.references, BAND).after
            y[:, :, STANDARD.references :][np.arange(12)[None, :, None] >= after[:, None, :]] = np.nan
            pairs = y.reshape(studies, 2, 12, STANDARD.columns)
            wrong = [_changed([*each[:1]], [*each[1:]], LOOKED_AT_ALPHA) for each in pairs]
            where = f"stop: decided, arms {effect * 100:g}% slower, boots' SD {boot_sd * 100:g}%"
            yield Case("change found where arms left early", where, 0.06, Rate.of(np.array(wrong)))


def _stopped_by_hand(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """A person looks after each block from the 6th, also with `vnuma results`, and stops at the first
    verdict.
    """
    for planned in (12, 24):
        y = draw(STANDARD, planned, studies, generator).cells
        wrong = np.zeros(studies, dtype=bool)
        for blocks in range(MIN_BOOTS_FOR_VERDICT, planned + 1):
            if run_withheld("randomised", NotEvaluated("not looked at"), ended=blocks == planned) is None:
                found = Simulated(y[:, :blocks], STANDARD.references)
                said = words(found)
                wrong |= some_arm(said["slower"] | said["faster"])
        yield Case("false verdicts when stopped by hand", f"{planned} blocks declared", 0.05, Rate.of(wrong))


def _allocated(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """The half-width that an allocation promises in 80% of studies."""
    for within in (SD, 2 * SD):
        for iterations in (3, 7):
            sigma = cell_sd(SD, within, iterations)
            blocks = blocks_for(ratio_for_width, MARGIN, sigma, STANDARD.arms, STANDARD.references)
            assert blocks is not None
            shape = (studies, blocks, STANDARD.columns)
            times = within * generator.standard_normal((*shape, iterations))
            y = normal(generator, shape) + np.median(times, axis=3)
            kept = np.expm1(Simulated(y, STANDARD.references).half_width_95.max(axis=1)) <= MARGIN
            where = f"SD within boots {within * 100:g}%, {iterations} iterations, B = {blocks}"
            yield Case("half-width kept where 80% is promised", where, 0.80, Rate.of(kept), at_most=False)


def _pooled(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """A summary over runs that differ by that SD in each arm, and one further run."""
    for runs, spread in ((3, 0.0), (3, 0.005), (6, 0.005), (6, 0.01), (10, 0.002)):
        y = draw(STANDARD, 8, studies * (runs + 1), generator).cells
        d = differences(y, STANDARD.references).reshape(studies, runs + 1, 8, STANDARD.arms)
        d += spread * generator.standard_normal((studies, runs + 1, 1, STANDARD.arms))
        wrong, outside = [], []
        for study in d:
            found = [
                pool("arm", [_pairs(run[:, arm]) for run in study[:runs]], STANDARD.arms, _RULES)
                for arm in range(STANDARD.arms)
            ]
            wrong.append(any(one.verdict and not _within(one.verdict.interval, 0.0) for one in found))
            more = study[runs].mean(axis=0)
            outside.append([not _within(one.prediction, at) for one, at in zip(found, more, strict=True)])
        where = f"{runs} runs, SD between them {spread * 100:g}%, B = 8"
        yield Case("family-wise error over runs", where, 0.05, Rate.of(np.array(wrong)))
        yield Case("one more run outside its range", where, 0.05, Rate.of(np.array(outside)))


def _pairs(differences: FloatArray) -> Contrast:
    """An arm of one run, in the form that a summary over runs needs."""
    d = tuple(map(float, differences))
    return Contrast("arm", "arm", len(d), float(differences.mean()), None, None, d)


def _noisy_reference(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Both columns of the reference scatter more, which the gate misses in some studies."""
    truth = replace(STANDARD, spread=(2, 2, 1, 1, 1, 1))
    for blocks in (6, 8, 12):
        found = outcome(draw(truth, blocks, studies, generator))
        assert found.a_a_p is not None
        where = f"both reference columns' SD x 2, B = {blocks}"
        yield Case("A/A alarms, noisy reference", where, 0.02, Rate.of(found.a_a_p < AA_ALARM))
        wrong = any_found(found)
        yield Case("family-wise error, noisy reference", where, 0.065, Rate.of(wrong))


def _within(interval: Interval | None, log_ratio: float) -> bool:
    return interval is not None and interval.contains(math.exp(log_ratio))


def _changed(before: Sequence[FloatArray], after: Sequence[FloatArray], alpha: float = ALPHA) -> bool:
    """Whether the interval of some arm's gap excludes the old value."""
    one, other = ([_by_arm(cells) for cells in side] for side in (before, after))
    rules = replace(_RULES, least=FIRST_LOOK)
    gaps = [change.gap for change in changes(one, other, _REFERENCE, rules, alpha=alpha) if change.gap]
    return any(gap.interval is not None and not gap.interval.contains(1.0) for gap in gaps)


def _by_arm(cells: FloatArray) -> dict[str, dict[int, float]]:
    """Arm -> block -> value, the reference's columns averaged."""
    columns = [cells[:, : STANDARD.references].mean(axis=1), *cells.T[STANDARD.references :]]
    names = [_REFERENCE, *map(str, range(STANDARD.arms))]
    return {
        name: {block: float(value) for block, value in enumerate(column) if not math.isnan(value)}
        for name, column in zip(names, columns, strict=True)
    }


def _rounded(times: FloatArray, at: float, step: float, truth: Truth) -> Comparison:
    """The product's comparison of a study's iterations, rounded to a clock's step."""
    shown = np.maximum(step, np.round(at * np.exp(times) / step) * step)
    rounding = rounding_of(clock_steps([shown.ravel().tolist()]), [1.0])
    return compared(np.log(np.median(shown, axis=2)), truth, rounding=rounding)


def _each(y: FloatArray) -> Iterator[Comparison]:
    return (compared(cells, STANDARD) for cells in y)


def _words(found: Comparison) -> list[Label]:
    return [decide(item, _RULES, ALPHA).label for item in found.contrasts]


def _false(found: Comparison, truth: float = 0.0) -> bool:
    """Whether the interval of some arm with a verdict excludes the truth."""
    return any(
        word is not Label.TOO_FEW
        and item.inference is not None
        and not item.inference.interval.contains(math.exp(truth))
        for word, item in zip(_words(found), found.contrasts, strict=True)
    )


def _thin(found: Comparison, arm: int) -> bool:
    boots = len(found.contrasts[arm].differences)
    return _words(found)[arm] is not Label.TOO_FEW and boots < MIN_BOOTS_FOR_VERDICT


NORMAL, LOST = 0.96, 0.05
"""How often a clean arm is called equivalent at 12 blocks without noise; what one noisy arm may cost."""

_CASES = (
    (1, 3.0, 8, 0.60),
    (1, 3.0, 12, NORMAL - LOST),
    (1, 6.0, 8, 0.58),
    (1, 6.0, 12, NORMAL - LOST),
    (2, 3.0, 8, 0.50),
    (2, 3.0, 12, 0.88),
    (3, 3.0, 8, 0.15),
    (3, 3.0, 12, 0.30),
)
"""Noisy arms, the factor of their SD, blocks, and how often a clean arm must be called equivalent."""


def noisy_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """One, two and three arms with three or six times the SD, a slow state, a single slow boot."""
    for noisy, factor, blocks, bound in _CASES:
        clean = STANDARD.arms - noisy
        truth = replace(STANDARD, spread=(*[1.0] * (STANDARD.references + clean), *[factor] * noisy))
        where = f"{noisy} of {STANDARD.arms} arms SD x {factor:g}, B = {blocks}"
        found = outcome(draw(truth, blocks, studies, generator))
        yield from _clean(found, clean, where, bound)
        wrong = any_found(found)
        yield Case("family-wise error, noisy arms", where, 0.06, Rate.of(wrong))
    for name, blocks, change, bound in (
        ("12% of one arm's boots 11% slower", 12, _slow_state, NORMAL - LOST),
        ("one boot 20% slower", 8, _slow_boot, 0.30),
    ):
        drawn = draw(STANDARD, blocks, studies, generator)
        change(drawn, generator)
        yield from _clean(outcome(drawn), STANDARD.arms - 1, f"{name}, B = {blocks}", bound)


def _clean(found: Simulated, clean: int, where: str, bound: float) -> Iterator[Case]:
    """The arms without noise: called equivalent as often as if there were none, and not if they differ."""
    called = within_band(found)[:, :clean]
    yield Case(f"clean arms called equivalent, {where}", where, bound, Rate.of(called), at_most=False)
    false = some_arm(within_band(found, BAND)[:, :clean])
    yield Case("clean arms called equivalent at 1%", where, 0.05, Rate.of(false))


def _slow_state(drawn: Studies, generator: np.random.Generator) -> None:
    slow = generator.random(drawn.times.shape[:2]) < 0.12
    drawn.times[:, :, -1] += math.log1p(0.11) * slow[:, :, None]


def _slow_boot(drawn: Studies, generator: np.random.Generator) -> None:
    block = generator.integers(drawn.times.shape[1], size=len(drawn.times))
    drawn.times[np.arange(len(block)), block, -1] += math.log1p(0.20)


SHAPES = (
    replace(HEAVY, name="t with 3 df", iterations=quiet),
    Truth("two arms' SD x 2", iterations=quiet, spread=(1, 1, 1, 1, 2, 2)),
    Truth("5% slow boots", boots=sometimes(0.05, 0.03), iterations=quiet),
    Truth("lognormal", boots=lognormal, iterations=quiet),
    Truth("t with 2 df", boots=student(2, SD / 2), iterations=quiet),
)


FAR_TAILS = ("lognormal", "t with 2 df")
"""A bound from 18 cells cannot know their tails, as docs and `vnuma power --pilot` state."""


def pilot_cases(pilots: int, generator: np.random.Generator) -> Iterator[Case]:
    """Distributions other than normal, unknowable from a pilot of 18 cells."""
    for truth in SHAPES:
        rate = kept_pilots(truth, generator, pilots)
        told = truth.name in FAR_TAILS
        what, bound = ("far tails: reported, not promised", 0.60) if told else ("other shapes", 0.75)
        yield Case(f"plans from a pilot, {what}", truth.name, bound, rate, at_most=False)


EFFECT = math.log(1.01)
QUIET = replace(STANDARD, iterations=quiet)
"""Boots of the standard SD, iterations of 0.3%."""
NOISY = (1.0, 1.0, 1.0, 1.0, 1.0, 2.0)


def placed_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Linear drift in random order with the covariate declared; squares under drift."""
    for blocks, drift, spread in ((6, 0.0, ()), (8, 0.0, ()), (6, 0.2, ()), (8, 0.2, ()), (8, 0.2, NOISY)):
        truth = replace(QUIET, spread=spread, trend=linear(drift))
        where = f"drift {drift * 100:g}%, B = {blocks}{', one SD x 2' if spread else ''}"
        drawn = draw(truth, blocks, studies, generator)
        placed = zip(drawn.cells, drawn.places.astype(np.float64), strict=True)
        found = [compared(cells, truth, places=at) for cells, at in placed]
        yield from _cases("place as covariate", where, found)
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
    drifting = drawn + drift * when / (blocks * k - 1)
    return [
        compared(cells, QUIET, places=at, place="factor") for cells, at in zip(drifting, places, strict=True)
    ]


def prediction_width(result: Simulated) -> FloatArray:
    """Per study and arm: half the range of one more boot against one of the reference, 95%."""
    y, r = result.y, result.references
    one = np.mean([(y[:, :, r:] - y[:, :, [at]]).var(axis=1, ddof=1) for at in range(r)], axis=0)
    return np.asarray(t_quantile(0.975, y.shape[1] - 1) * np.sqrt(result.own_se**2 + one))
