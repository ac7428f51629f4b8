"""What a run's blocks likely detect, and how many would distinguish an effect from none.

Based on the upper bound of the spread behind each arm's interval, pooled or its own, and never on the
estimate, since using the estimate would mean stopping on it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vnuma.analysis import planning
from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Comparison, Contrast
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.result import ArmResult
from vnuma.analysis.simulate import Layout
from vnuma.analysis.variance import Noise, pilot_upper
from vnuma.analysis.verdict import Label, Rules, equivalence_withheld
from vnuma.domain.study.study import Order


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
            return planning.detectable_by_pairs(self._sd_at(blocks), blocks, self.arms)
        return planning.ratio_needed(self._layout(blocks)) * self._sd_at(blocks)

    def decidable_effect(self, blocks: int) -> float:
        """The effect that they find, and within which they call an arm without effect equivalent."""
        if self.own:
            equivalent = planning.equivalent_by_pairs(self._sd_at(blocks), blocks, self.arms)
        else:
            equivalent = planning.ratio_for_equivalence(self._layout(blocks)) * self._sd_at(blocks)
        return max(self.detectable_effect(blocks), equivalent)

    def blocks_to_decide(self, effect: float) -> int | None:
        """Fewest blocks, at least 6, that distinguish the effect (ln scale) from none; None beyond 200."""
        if not self.sd and not self.rounded:
            return planning.FEWEST_BLOCKS
        return planning.fewest_blocks(effect, self.decidable_effect)

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
        return replace(error, sd=error.sd * self._gaps_in(arm)).detectable_effect(self.blocks)

    def _gaps_in(self, arm: Contrast) -> float:
        """The arm's standard error divided by the one that complete blocks would have."""
        if arm.inference is None or not self.ms:
            return 1.0
        complete = self.ms * (1 + 1 / len(self.comparison.reference)) / self.blocks
        return math.sqrt((arm.inference.se**2 - arm.rounded) / complete)

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
            2 * self.comparison.rounding.variance(self.ms),
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
    if scatter is None:
        return tuple(arms)
    return tuple(
        replace(arm, verdict=replace(arm.verdict, blocks_needed=_needed(scatter, arm, rules)))
        if _is_open(arm, rules)
        else arm
        for arm in arms
    )


def _is_open(arm: ArmResult, rules: Rules) -> bool:
    verdict = arm.verdict
    undecided = verdict.label is Label.UNDECIDED and not verdict.withheld
    odd = verdict.odd_boots or verdict.reference_odd_boots
    return undecided and not odd and equivalence_withheld(arm.contrast, rules) is None


def _needed(scatter: Scatter, arm: ArmResult, rules: Rules) -> int | None:
    needed = scatter.error_of(arm.contrast).blocks_to_decide(math.log1p(rules.margin))
    return needed if needed is not None and needed > scatter.blocks else None
