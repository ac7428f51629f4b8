"""The verdict table: first match wins. No stronger verdict than the data allow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container
from dataclasses import dataclass
from enum import StrEnum

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT, AaCheck, ControlCheck
from vnuma.analysis.compare import Contrast, Interval
from vnuma.analysis.outliers import is_rare, share_limit
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.rounding import SHARE_OF_MARGIN
from vnuma.domain.workloads.metric import Better, Replicate


class Label(StrEnum):
    """The five verdicts."""

    SLOWER = "slower"
    FASTER = "faster"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    TOO_FEW = "too few boots"


class Withheld(StrEnum):
    """Why a verdict is not given although there is an estimate."""

    FIXED_ORDER = "fixed order"
    NOT_ENDED = "not at its declared end"
    A_A_ALARM = "A/A alarm"
    CONTROL_FAILED = "positive control failed"
    COARSE_CLOCK = "coarse clock"
    SIZES_OPPOSED = "sizes with opposite verdicts"


@dataclass(frozen=True)
class Rules:
    """What applies to every arm of one analysis. `margin` is the equivalence band as a ratio: 0.01.

    `better` says which direction of the ratio is faster. `least`: boots for any verdict; "equivalent" always
    needs MIN_BOOTS_FOR_VERDICT.
    """

    margin: float
    withheld: Withheld | None
    control_failed: bool
    control_arm: str | None = None
    better: Better = "lower"
    replicate: Replicate = "boot"
    least: int = MIN_BOOTS_FOR_VERDICT


@dataclass(frozen=True)
class Verdict:
    """The verdict on one arm against the reference, with its basis.

    `ratio` and the intervals are None when there is nothing to estimate them from. `level` is the
    simultaneous level of `interval`; `equivalence_level` that of `equivalence_interval`. `beyond_margin`: the
    whole interval lies beyond the equivalence band ("by at least 1%"). `detectable`: equivalent, yet the
    interval excludes 1. `rank_supports` is False when the rank interval contains 1 although the verdict is
    slower or faster; None if not applicable. `half_width` is that of `interval`, as a ratio minus 1.
    `blocks_needed`: the total that would likely distinguish an effect of the margin from none; None where no
    number can be promised, and at single sizes. `better`: which direction of the ratio is faster.
    `replicate`: what `boots` counts. `left_out`: the plan left the arm out on this VM. `prediction`: where
    the ratio of one more boot each lies in 95% of cases. `odd_boots`: the distances of those of the arm's
    boots that exceed the band, as ratios; `reference_odd_boots`: of the reference; `others`: the ratio in the
    `other_boots` pairs without those, None without any. For "equivalent", `unseen` is the largest share of
    boots that may be in a state from `noticeable` on, a ratio minus 1. `look`: the number of blocks at which
    a study with `stop: decided` looked last at the arm; None for other studies.
    """

    label: Label
    withheld: Withheld | None
    ratio: float | None
    interval: Interval | None
    equivalence_interval: Interval | None
    level: float
    equivalence_level: float
    margin: float
    boots: int
    boots_needed: int
    provisional: bool = False
    beyond_margin: bool = False
    detectable: bool = False
    rank_supports: bool | None = None
    half_width: float | None = None
    blocks_needed: int | None = None
    better: Better = "lower"
    replicate: Replicate = "boot"
    left_out: bool = False
    prediction: Interval | None = None
    odd_boots: tuple[float, ...] = ()
    reference_odd_boots: tuple[float, ...] = ()
    others: float | None = None
    other_boots: int = 0
    unseen: float | None = None
    noticeable: float | None = None
    look: int | None = None


def run_withheld(order: str, a_a: AaCheck | NotEvaluated, *, ended: bool = True) -> Withheld | None:
    """Rule 1: fixed order, an A/A check at p < 0.01, and a run before its declared end withhold every
    verdict.

    A run that is looked at repeatedly and stopped at the first verdict gives a wrong one in 10 to 20% of
    cases (P. Armitage, C. K. McPherson, B. C. Rowe 1969, J. R. Stat. Soc. A 132:235).
    """
    if order == "fixed":
        return Withheld.FIXED_ORDER
    if isinstance(a_a, AaCheck) and a_a.state == "alarm":
        return Withheld.A_A_ALARM
    return None if ended else Withheld.NOT_ENDED


def rules_for(
    margin: float,
    withheld: Withheld | None,
    control: ControlCheck | NotEvaluated,
    better: Better = "lower",
    replicate: Replicate = "boot",
) -> Rules:
    """The rules of one analysis; `withheld` comes from `run_withheld`."""
    failed = isinstance(control, ControlCheck) and not control.passed
    arm = control.arm if isinstance(control, ControlCheck) else None
    return Rules(margin, withheld, failed, arm, better, replicate)


def decide(contrast: Contrast, rules: Rules, alpha: float) -> Verdict:
    """The verdict of one arm."""
    band = math.log1p(rules.margin)
    far = [cell for cell in contrast.odd if abs(cell.shift) > band]
    label, withheld = _label(contrast, rules, one_state=is_rare(len(far), contrast.boots))
    odd = tuple(math.exp(cell.shift) for cell in far if cell.label == contrast.label)
    others = _without(contrast, {cell.block for cell in far}) if far else ()
    looked = label is Label.EQUIVALENT and contrast.noticeable is not None
    inference = contrast.inference
    interval = inference.interval if inference else None
    directed = label in (Label.SLOWER, Label.FASTER)
    return Verdict(
        label=label,
        withheld=withheld,
        ratio=contrast.ratio,
        interval=interval,
        equivalence_interval=inference.equivalence if inference else None,
        level=1 - alpha,
        equivalence_level=1 - 2 * alpha,
        margin=rules.margin,
        boots=contrast.boots,
        boots_needed=rules.least,
        provisional=contrast.boots < rules.least,
        beyond_margin=directed and interval is not None and interval.beyond(rules.margin),
        detectable=label is Label.EQUIVALENT and interval is not None and not interval.contains(1.0),
        rank_supports=not rank.low <= 1 <= rank.high if directed and (rank := contrast.rank) else None,
        half_width=math.expm1(inference.half_width) if inference else None,
        better=rules.better,
        replicate=rules.replicate,
        prediction=contrast.prediction,
        odd_boots=odd,
        reference_odd_boots=tuple(math.exp(cell.shift) for cell in far if cell.label != contrast.label),
        others=math.exp(statistics.fmean(others)) if others else None,
        other_boots=len(others),
        unseen=share_limit(len(odd), contrast.boots) if looked else None,
        noticeable=math.expm1(max(contrast.noticeable or 0.0, band)) if looked else None,
    )


def _without(contrast: Contrast, blocks: Container[int]) -> tuple[float, ...]:
    """The arm's differences in all other blocks."""
    pairs = zip(contrast.paired, contrast.differences, strict=True)
    return tuple(d for block, d in pairs if block not in blocks)


def _label(contrast: Contrast, rules: Rules, *, one_state: bool) -> tuple[Label, Withheld | None]:
    if rules.withheld:
        return Label.UNDECIDED, rules.withheld
    inference = contrast.inference
    if contrast.boots < rules.least or inference is None:
        return Label.TOO_FEW, None
    band = 1 + rules.margin
    inside = 1 / band < inference.equivalence.low and inference.equivalence.high < band
    if inside and contrast.boots >= MIN_BOOTS_FOR_VERDICT:
        why = equivalence_withheld(contrast, rules)
        if why:
            return Label.UNDECIDED, why
        if one_state:  # a mean over states describes no boot
            return Label.EQUIVALENT, None
    slowness = inference.interval.slowness(rules.better)
    if slowness.low > 1:
        return Label.SLOWER, None
    if slowness.high < 1:
        return Label.FASTER, None
    return Label.UNDECIDED, None


def equivalence_withheld(contrast: Contrast, rules: Rules) -> Withheld | None:
    """Why an arm is not called equivalent, whatever its interval; None where it may be."""
    # An instrument that misses a known effect cannot show that there is none.
    if rules.control_failed and contrast.arm != rules.control_arm:
        return Withheld.CONTROL_FAILED
    coarse = contrast.step > math.log1p(rules.margin) * SHARE_OF_MARGIN
    return Withheld.COARSE_CLOCK if coarse else None
