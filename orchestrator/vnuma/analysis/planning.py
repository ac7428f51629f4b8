"""Planning: what a design detects, which blocks an effect needs, where a rule ends a study, what is cheapest.

The rule itself is simulated: the noncentral-t formula without the gate would overstate power by up to 12
points. 4,000 studies: +-0.8 points at 80%. "Likely" is 80%; nothing here is a promise. Costs of boots and
iterations: T. Kalibera and R. Jones 2013, "Rigorous benchmarking in reasonable time", ISMM."""

from __future__ import annotations

import bisect
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from statistics import NormalDist

import numpy as np

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Comparison, Contrast
from vnuma.analysis.distributions import FloatArray, chi2_quantile, noncentrality, t_quantile
from vnuma.analysis.records import AnalysisDesign, NotEvaluated, Series
from vnuma.analysis.result import ArmResult
from vnuma.analysis.simulate import SEED, Ended, Layout, Null, Simulated, run_decided, simulate_null
from vnuma.analysis.stopping import first_look
from vnuma.analysis.variance import Noise, cell_sd, median_variance, pilot_upper
from vnuma.analysis.verdict import Label, Rules, equivalence_withheld
from vnuma.domain.study.study import Order

POWER = 0.80
ALPHA = 0.05
FEWEST_BLOCKS = 6
_PLACES = 300
"""Points of each of two distributions on their common grid: quantiles are within 0.2%."""
# Every number up to 20, then coarser: the simulation's own error is larger than the step.
GRID = (*range(FEWEST_BLOCKS, 21), *range(22, 45, 2), *range(50, 201, 6))


def power(effect: float, sigma: float, layout: Layout) -> float:
    """Probability that an arm slower by `effect` (ratio: 0.01 is 1%) is found, at cell SD `sigma`."""
    needed = _needed_to_detect(simulate_null(layout))
    return float((needed < math.log1p(effect) / sigma).mean())


def power_all(effect: float, sigma: float, layout: Layout) -> float:
    """Probability that every arm is found where all are slower by `effect`."""
    needed = _needed_to_detect(simulate_null(layout)).reshape(-1, layout.arms)
    return float((needed < math.log1p(effect) / sigma).all(axis=1).mean())


def power_equivalent(margin: float, sigma: float, layout: Layout) -> float:
    """Probability that an arm without any effect is called equivalent within `margin`."""
    needed = _needed_for_equivalence(simulate_null(layout))
    return float((needed < math.log1p(margin) / sigma).mean())


def detectable_effect(sigma: float, layout: Layout) -> float:
    """The effect (ratio: 0.01 is 1%) that the design likely (80%) detects."""
    return math.expm1(ratio_needed(layout) * sigma)


def detectable_by_pairs(sd: float, blocks: int, arms: int) -> float:
    """The same (ln scale) for an arm with its own pairs' error, whose differences have that SD."""
    critical = t_quantile(1 - ALPHA / (2 * arms), blocks - 1)
    return noncentrality(POWER, critical, blocks - 1) * sd / math.sqrt(blocks)


def equivalent_by_pairs(sd: float, blocks: int, arms: int) -> float:
    """The margin (ln scale) within which such an arm, without effect, is likely called equivalent."""
    return _pairs_within(blocks, arms) * sd / math.sqrt(blocks)


@lru_cache(maxsize=256)
def _pairs_within(blocks: int, arms: int) -> float:
    """Quantile of |z| + t s: z the standard normal mean, s^2 a chi-square over its df, on a grid of both."""
    df, normal = blocks - 1, NormalDist()
    shares = [(place + 0.5) / _PLACES for place in range(_PLACES)]
    z = np.array([normal.inv_cdf((1 + share) / 2) for share in shares])
    s = np.sqrt([chi2_quantile(share, df) / df for share in shares])
    return float(np.quantile(z[:, None] + t_quantile(1 - ALPHA / arms, df) * s[None, :], POWER))


@lru_cache(maxsize=4096)
def ratio_needed(layout: Layout) -> float:
    """delta/sigma, delta = ln(1 + effect), at which detection has probability POWER."""
    return float(np.quantile(_needed_to_detect(simulate_null(layout)), POWER))


@lru_cache(maxsize=4096)
def ratio_for_equivalence(layout: Layout) -> float:
    """delta/sigma at which an arm without effect is called equivalent with probability POWER."""
    return float(np.quantile(_needed_for_equivalence(simulate_null(layout)), POWER))


@lru_cache(maxsize=4096)
def ratio_for_width(layout: Layout) -> float:
    """width/sigma that the widest of the 95% half-widths keeps with probability POWER; ln scale."""
    return float(np.quantile(simulate_null(layout).half_width_95.max(axis=1), POWER))


def blocks_for(
    ratio: Callable[[Layout], float], size: float, sigma: float, arms: int, references: int
) -> int | None:
    """Fewest blocks, at least 6, at which `size` (a ratio minus 1) is likely (80%) enough; None beyond 200.

    `ratio` says for what: an effect to detect (`ratio_needed`), a band of equivalence
    (`ratio_for_equivalence`) or all half-widths (`ratio_for_width`). `sigma`: the SD of a cell.
    """
    if sigma == 0:
        return FEWEST_BLOCKS
    return fewest_blocks(math.log1p(size) / sigma, lambda blocks: ratio(Layout(arms, references, blocks)))


def _needed_to_detect(null: Null) -> FloatArray:
    """The delta/sigma from which each simulated arm would be found slower."""
    return np.asarray(null.half_width_95 - null.estimate).ravel()


def _needed_for_equivalence(null: Null) -> FloatArray:
    """The delta/sigma from which each simulated arm would be called equivalent."""
    return np.asarray(np.abs(null.estimate) + null.half_width_90).ravel()


def fewest_blocks(available: float, needed: Callable[[int], float]) -> int | None:
    """Bisection over the grid of designs, since requirements fall as blocks are added."""
    place = bisect.bisect_left(GRID, True, key=lambda blocks: needed(blocks) <= available)
    return GRID[place] if place < len(GRID) else None


ASSUMED_BOOT_SDS = (0.002, 0.005, 0.01)
ASSUMED_WITHIN_SD = 0.005
TYPICAL_BOOT_SD = 0.005
TYPICAL_SPREADS = (TYPICAL_BOOT_SD, ASSUMED_WITHIN_SD)
"""Between boots, and of an iteration within its boot."""
STOPPED_STUDIES = 2000


@dataclass(frozen=True)
class Spread:
    """An SD to plan with, on the ln scale: `cell_sd` of one cell, `label` for its source."""

    label: str
    cell_sd: float


@dataclass(frozen=True)
class Needed:
    """Blocks that likely detect the effect, and that likely call an arm without effect equivalent.

    None: more than 200.
    """

    spread: Spread
    to_detect: int | None
    for_equivalence: int | None


@dataclass(frozen=True)
class Outlook:
    """What the planned number of blocks likely shows at one SD.

    `detectable`: the effect found in 80% of studies; `power`: how often the given effect is found in one arm,
    `power_all` in every arm; `equivalent`: how often an arm without effect is called equivalent.
    """

    spread: Spread
    blocks: int
    detectable: float
    power: float
    power_all: float
    equivalent: float


@dataclass(frozen=True)
class Ending:
    """Where the precision rule ends a study: mean and 90% point of blocks, share that reaches the cap."""

    mean_blocks: float
    most_blocks: int
    capped: float


@dataclass(frozen=True)
class Leaving:
    """Boots of a study whose arms leave when they are decided (`stop: decided`), at one SD.

    `likely_boots` and `most_boots` (90% point) where the arms are slower as `effects_in_turn` says;
    `fewest_boots` where all are three bands away. `decided`: the share of the former in which every arm has
    a verdict. `advised_blocks`: the `max_blocks` with which it is 80% in this design; None: over 48.
    """

    spread: Spread
    fewest_boots: float
    likely_boots: float
    most_boots: int
    decided: float
    advised_blocks: int | None


def assumed_spreads(iterations: int, sizes: int) -> tuple[Spread, ...]:
    """Quiet, usual and noisy hosts; 0.5% between iterations of a boot."""
    return tuple(_assumed(boot_sd, iterations, sizes) for boot_sd in ASSUMED_BOOT_SDS)


def typical_spread(iterations: int, sizes: int) -> Spread:
    """The spread for planning before anything was measured."""
    return _assumed(TYPICAL_BOOT_SD, iterations, sizes)


def _assumed(boot_sd: float, iterations: int, sizes: int) -> Spread:
    return Spread(f"{boot_sd * 100:.1f}%", cell_sd(boot_sd, ASSUMED_WITHIN_SD, iterations, sizes))


def layout_of(design: AnalysisDesign, blocks: int) -> Layout:
    """The design's columns. Raises ValueError when nothing is compared."""
    if not design.compared:
        raise ValueError("a study with only the reference arm compares nothing")
    return Layout(len(design.compared), len(design.reference_labels), blocks)


def needed(design: AnalysisDesign, spread: Spread, effect: float) -> Needed:
    """Blocks for an effect (ratio: 0.01 is 1%) and for equivalence within the design's own margin."""
    arms, references = len(design.compared), len(design.reference_labels)
    return Needed(
        spread,
        blocks_for(ratio_needed, effect, spread.cell_sd, arms, references),
        blocks_for(ratio_for_equivalence, design.equivalence, spread.cell_sd, arms, references),
    )


def outlook(design: AnalysisDesign, blocks: int, spread: Spread, effect: float) -> Outlook | None:
    """The effects that this number of blocks can show; None below 6 blocks and in fixed order, which have no
    verdict.
    """
    if blocks < FEWEST_BLOCKS or design.order == "fixed":
        return None
    layout = layout_of(design, blocks)
    return Outlook(
        spread,
        blocks,
        detectable_effect(spread.cell_sd, layout),
        power(effect, spread.cell_sd, layout),
        power_all(effect, spread.cell_sd, layout),
        power_equivalent(design.equivalence, spread.cell_sd, layout),
    )


def ending(design: AnalysisDesign, precision: float, spread: Spread) -> Ending:
    """Simulated studies, looked at after each block as `stopping` says, up to the design's blocks."""
    layout = layout_of(design, design.blocks)
    k = layout.arms + layout.references
    y = np.random.default_rng((SEED, k)).standard_normal((STOPPED_STUDIES, layout.blocks, k))
    ended = np.full(STOPPED_STUDIES, layout.blocks)
    widest_allowed = math.log1p(precision) / spread.cell_sd
    going = np.ones(STOPPED_STUDIES, dtype=bool)
    for blocks in range(first_look(k), layout.blocks):
        widest = Simulated(y[going, :blocks], layout.references).half_width_95.max(axis=1)
        stops = np.flatnonzero(going)[widest <= widest_allowed]
        ended[stops], going[stops] = blocks, False
        if not going.any():
            break
    return Ending(float(ended.mean()), int(np.quantile(ended, 0.9)), float(going.mean()))


_IN_TURN = (0.5, 0.0, 1.0, 3.0)
"""Effects to plan with, in bands; the first, halfway between none and the band, is the hardest to decide."""
_OFFERED = (8, 12, 16, 24, 32, 48)
"""Numbers for max_blocks."""
_LEAVING_STUDIES = 400


def effects_in_turn(arms: int) -> list[float]:
    """The effects of that many arms, in bands."""
    return [_IN_TURN[arm % len(_IN_TURN)] for arm in range(arms)]


def leaving(design: AnalysisDesign, spread: Spread) -> Leaving:
    """Simulated studies of the rule, with at most the design's blocks. Raises ValueError as `layout_of`."""
    layout = layout_of(design, design.blocks)
    band = math.log1p(design.equivalence)
    effects = band * np.array(effects_in_turn(layout.arms))
    mixed = _left(layout, effects, spread, band)
    apart = _left(layout, np.full(layout.arms, 3 * band), spread, band)

    def enough(blocks: int) -> bool:
        return _all_decided(_left(replace(layout, blocks=blocks), effects, spread, band)) >= POWER

    place = bisect.bisect_left(_OFFERED, True, key=enough)
    return Leaving(
        spread,
        float(apart.boots.mean()),
        float(mixed.boots.mean()),
        int(np.quantile(mixed.boots, 0.9)),
        _all_decided(mixed),
        _OFFERED[place] if place < len(_OFFERED) else None,
    )


def _all_decided(ended: Ended) -> float:
    return float((ended.word > 0).all(axis=1).mean())


def _left(layout: Layout, effects: FloatArray, spread: Spread, band: float) -> Ended:
    columns = layout.arms + layout.references
    shape = (_LEAVING_STUDIES, layout.blocks, columns)
    y = spread.cell_sd * np.random.default_rng((SEED, columns)).standard_normal(shape)
    y[:, :, layout.references :] += effects
    return run_decided(y, layout.references, band)


ITERATIONS = (3, 5, 7)
"""A single iteration has no protection against a slow one; beyond seven a median gains little."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one cell: `boot` for whatever is measured, `iteration` for a pass over all sizes
    and forms.
    """

    boot: float
    iteration: float
    warmups: int

    def cell(self, iterations: int) -> float:
        """A whole cell; a warm-up costs as much as a timed iteration."""
        return self.boot + self.iteration * (self.warmups + iterations)

    @classmethod
    def measured(cls, cell: float, iteration: float, warmups: int, iterations: int) -> Costs:
        """From the seconds of a cell with that many iterations."""
        return cls(max(0.0, cell - iteration * (warmups + iterations)), iteration, warmups)


@dataclass(frozen=True)
class Allocation:
    """The number of iterations per boot, of blocks, and of all their boots; `hours` on one VM."""

    iterations: int
    blocks: int
    boots: int
    hours: float


@dataclass(frozen=True)
class Plans:
    """Allocations, cheapest first, whose 95% half-widths are all likely (80%) at most `width`: 0.01 is 1%.

    Empty if more than 200 blocks would be needed.
    """

    width: float
    choices: tuple[Allocation, ...]


def wanted_width(design: AnalysisDesign, precision: float | None) -> float:
    """The declared precision; else the equivalence band, in which wider intervals cannot lie."""
    return precision or design.equivalence


def allocate(design: AnalysisDesign, width: float, spread: tuple[float, float], costs: Costs) -> Plans:
    """`spread`: SDs between boots and of an iteration within its boot, on the ln scale."""
    arms, references = len(design.compared), len(design.reference_labels)
    found = []
    for iterations in ITERATIONS:
        sigma = cell_sd(*spread, iterations, len(design.sizes))
        blocks = blocks_for(ratio_for_width, width, sigma, arms, references) if arms else None
        if blocks is not None:
            boots = blocks * len(design.columns)
            found.append(Allocation(iterations, blocks, boots, boots * costs.cell(iterations) / 3600))
    return Plans(width, tuple(sorted(found, key=lambda one: (one.hours, one.blocks))))


def upper_spread(noise: Noise, iterations: int, sizes: int) -> tuple[float, float] | None:
    """The components to plan with: the upper bound's addition to a cell's SD is put between boots.

    None without components. `iterations` and `sizes` are those that were run.
    """
    if noise.cell_sd_upper is None or noise.within_sd is None or noise.boot_sd is None:
        return None
    within = median_variance(iterations) * noise.within_sd**2 / sizes
    return math.sqrt(max(0.0, noise.cell_sd_upper**2 - within)), noise.within_sd


def iteration_seconds(series: Iterable[Series], iterations: int) -> dict[str, float]:
    """By VM, the duration of one pass over all sizes and forms, by the controller's clock if available."""
    spent: dict[str, dict[tuple[str, int], float]] = defaultdict(lambda: defaultdict(float))
    for one in series:
        total = spent[one.vm][one.label, one.block]
        for elapsed, client in zip_longest(one.elapsed_ms, one.client_ms):
            total += (elapsed if client is None else client) / 1000 / iterations
        spent[one.vm][one.label, one.block] = total
    return {vm: statistics.fmean(boots.values()) for vm, boots in spent.items()}


@dataclass(frozen=True)
class ArmError:
    """The error behind an arm's interval, as upper bounds on the ln scale.

    `sd`: of one cell, or if `own`, of the arm's own differences in a block. `rounded`: the variance that a
    coarse clock leaves in the arm's mean difference, whatever the blocks.
    """

    sd: float
    own: bool
    rounded: float
    arms: int
    references: int

    def detectable_effect(self, blocks: int) -> float:
        """The effect (ln scale) that this many blocks find in 80% of studies."""
        if self.own:
            return detectable_by_pairs(self._sd_at(blocks), blocks, self.arms)
        return ratio_needed(self._layout(blocks)) * self._sd_at(blocks)

    def decidable_effect(self, blocks: int) -> float:
        """The effect that they find, and within which they call an arm without effect equivalent."""
        if self.own:
            equivalent = equivalent_by_pairs(self._sd_at(blocks), blocks, self.arms)
        else:
            equivalent = ratio_for_equivalence(self._layout(blocks)) * self._sd_at(blocks)
        return max(self.detectable_effect(blocks), equivalent)

    def blocks_to_decide(self, effect: float) -> int | None:
        """Fewest blocks, at least 6, that distinguish the effect (ln scale) from none; None beyond 200."""
        if not self.sd and not self.rounded:
            return FEWEST_BLOCKS
        return fewest_blocks(effect, self.decidable_effect)

    def _sd_at(self, blocks: int) -> float:
        """Rounding does not shrink with blocks: equivalent to larger scatter of cells."""
        columns = 1.0 if self.own else 1 + 1 / self.references
        return math.hypot(self.sd, math.sqrt(self.rounded * blocks / columns))

    def _layout(self, blocks: int) -> Layout:
        return Layout(self.arms, self.references, blocks)


@dataclass(frozen=True)
class Scatter:
    """How much the cells of a comparison scatter, as far as it limits what its blocks can show."""

    comparison: Comparison
    cell_sd: float
    """Upper bound, on the ln scale."""
    blocks: int
    ms: float

    @classmethod
    def of(cls, comparison: Comparison, noise: Noise) -> Scatter | None:
        """None where it could not be estimated."""
        if comparison.fit is None or noise.cell_sd_upper is None:
            return None
        return cls(comparison, noise.cell_sd_upper, len(comparison.fit.grid.blocks), comparison.fit.ms or 0.0)

    def detected(self, arms: Sequence[Contrast]) -> float:
        """The largest effect (ln scale) that any arm needs; an arm with missing cells needs a larger one."""
        return max([self.pooled.detectable_effect(self.blocks), *map(self._detected_in, arms)])

    def _detected_in(self, arm: Contrast) -> float:
        error = self.error_of(arm)
        if error.own:
            return error.detectable_effect(arm.boots)
        if arm.inference is None or not self.ms:
            return error.detectable_effect(self.blocks)
        complete = self.ms * (1 + 1 / len(self.comparison.reference)) / self.blocks
        gaps = math.sqrt((arm.inference.se**2 - arm.rounded) / complete)
        return replace(error, sd=error.sd * gaps).detectable_effect(self.blocks)

    @property
    def pooled(self) -> ArmError:
        """The error of an arm that rests on all cells."""
        return self._error(self.cell_sd, own=False)

    def error_of(self, arm: Contrast) -> ArmError:
        """The error of that arm: its own, or the pooled one."""
        if not arm.rests_on_pairs:
            return self.pooled
        return self._error(
            math.sqrt(pilot_upper(statistics.variance(arm.differences), arm.boots - 1)), own=True
        )

    def _error(self, sd: float, *, own: bool) -> ArmError:
        return ArmError(
            sd,
            own,
            self.comparison.rounded,
            sum(other.boots > 0 for other in self.comparison.contrasts),
            len(self.comparison.reference),
        )


def detectable(comparison: Comparison, noise: Noise, order: Order) -> float | NotEvaluated:
    """The difference that this many blocks likely detect in any arm, as a ratio minus 1."""
    if order == "fixed":
        return NotEvaluated("a fixed order gives no verdict")
    scatter = Scatter.of(comparison, noise)
    if scatter is None:
        return NotEvaluated("the spread could not be estimated")
    measured = [item for item in comparison.contrasts if item.boots]
    if not measured or scatter.blocks < MIN_BOOTS_FOR_VERDICT:
        return NotEvaluated(
            f"fewer than {MIN_BOOTS_FOR_VERDICT} blocks give no verdict, or there is no arm to compare"
        )
    return math.expm1(scatter.detected(measured))


def with_blocks_needed(
    arms: Sequence[ArmResult], comparison: Comparison, noise: Noise, rules: Rules
) -> tuple[ArmResult, ...]:
    """The arms; undecided ones with the blocks that would likely distinguish an effect of the margin from
    none.

    None where no number can be promised: as many were run already, some boots are odd, or "equivalent" would
    be withheld.
    """
    scatter = Scatter.of(comparison, noise)
    found = []
    for arm in arms:
        verdict = arm.verdict
        undecided = verdict.label is Label.UNDECIDED and not verdict.withheld
        odd = verdict.odd_boots or verdict.reference_odd_boots
        if scatter and undecided and not odd and equivalence_withheld(arm.contrast, rules) is None:
            needed = scatter.error_of(arm.contrast).blocks_to_decide(math.log1p(rules.margin))
            if needed is not None and needed > scatter.blocks:
                arm = replace(arm, verdict=replace(verdict, blocks_needed=needed))
        found.append(arm)
    return tuple(found)
