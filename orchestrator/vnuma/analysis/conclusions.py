"""What verdicts say together: which arms may be recommended, and the sizes that differ from the whole.

The overall verdict is about the mean: an arm that is slower at small sizes and faster at large ones may be
equivalent overall. Verdicts at single sizes hold together at 1 - alpha over all arms and sizes.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from vnuma.analysis.cells import arm_of
from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Comparison, own_se
from vnuma.analysis.distributions import t_quantile
from vnuma.analysis.records import worsening
from vnuma.analysis.result import ArmResult, DifferingSize, SizeResult
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.analysis.wording import together
from vnuma.domain.workloads.metric import Better, sized
from vnuma.words.plain_text import capitalised, listed

_OPPOSITE = {Label.SLOWER: Label.FASTER, Label.FASTER: Label.SLOWER}


def without_opposed(arms: Sequence[ArmResult], sizes: Sequence[SizeResult]) -> tuple[ArmResult, ...]:
    """The arms; one that is slower at a size and faster at another, or overall, has no overall verdict."""
    found = []
    for arm in arms:
        said = {item.verdict.label for size in sizes for item in size.arms if item.arm == arm.arm}
        if any(_OPPOSITE.get(word) in {*said, arm.verdict.label} for word in said):
            verdict = replace(
                arm.verdict,
                label=Label.UNDECIDED,
                withheld=Withheld.SIZES_OPPOSED,
                beyond_margin=False,
                detectable=False,
                rank_supports=None,
                blocks_needed=None,
            )
            arm = replace(arm, verdict=verdict)
        found.append(arm)
    return tuple(found)


def differing_sizes(arms: Sequence[ArmResult], sizes: Sequence[SizeResult]) -> tuple[DifferingSize, ...]:
    """Sizes whose verdict differs from the arm's overall one, arm by arm.

    "Undecided" and "too few boots" do not count as different, since one size has less data.
    """
    return tuple(
        DifferingSize(arm.arm, size.size, item.verdict)
        for arm in arms
        for size in sizes
        for item in size.arms
        if item.arm == arm.arm
        and item.verdict.label not in (Label.UNDECIDED, Label.TOO_FEW, arm.verdict.label)
    )


def differing_sizes_sentence(differing: Sequence[DifferingSize], size_word: str) -> str:
    """As in "At 500 rows a side 2x8 and 4x4 are equivalent within 1%; at 2,000 rows a side 2x8 is …"."""
    sizes: dict[int, dict[Label, list[tuple[str, Verdict]]]] = defaultdict(lambda: defaultdict(list))
    for item in differing:
        sizes[item.size][item.verdict.label].append((item.arm, item.verdict))
    said = (
        f"at {sized(size, size_word)} {listed(list(map(together, words.values())))}"
        for size, words in sorted(sizes.items())
    )
    return f"{capitalised('; '.join(said))}."


def recommend(reference: str, arms: Sequence[ArmResult], near: Collection[str] = ()) -> tuple[str, ...]:
    """The arms to use: those `near` the best, less than the band behind it (`near_best`).

    If none surely is, the fastest arm alone; without a faster one, the reference and its equivalents. Empty
    while an arm's verdict is withheld. Without a faster arm, also empty while a measured arm is undecided and
    nothing is near the best, as that arm may be faster.
    """
    opposed = {arm.arm for arm in arms if arm.verdict.withheld is Withheld.SIZES_OPPOSED}
    if any(arm.verdict.withheld for arm in arms if arm.arm not in opposed):
        return ()
    if all(arm.verdict.left_out for arm in arms):
        return ()
    faster = [arm for arm in arms if arm.verdict.label is Label.FASTER]
    equal = [arm.arm for arm in arms if arm.verdict.label is Label.EQUIVALENT]
    decided = not faster and not undecided(arms)
    usable = {*near, *((reference, *equal) if decided else ())} - opposed
    if usable:
        return tuple(name for name in (reference, *(arm.arm for arm in arms)) if name in usable)
    if faster:
        return (
            min(faster, key=lambda arm: worsening(arm.contrast.log_ratio or 0.0, arm.verdict.better)).arm,
        )
    return ()


def undecided(arms: Sequence[ArmResult]) -> tuple[str, ...]:
    """The measured arms that may still turn out to be faster."""
    open_words = (Label.UNDECIDED, Label.TOO_FEW)
    return tuple(arm.arm for arm in arms if arm.verdict.label in open_words and not arm.verdict.left_out)


def near_best(
    comparison: Comparison, candidates: Mapping[str, Sequence[str]], band: float, better: Better = "lower"
) -> tuple[str, ...]:
    """The candidates that are less than `band` (ln scale) behind the best; empty if none surely is.

    `candidates` has each arm's columns: two of the reference with A/A.
    """
    limits: dict[tuple[str, str], tuple[float, float]] = {}
    for one, other in combinations(candidates, 2):
        low, high = _limits(comparison, candidates[one], candidates[other], better)
        limits |= {(one, other): (low, high), (other, one): (-high, -low)}
    alive = [
        one
        for one in candidates
        if not any(limits[one, other][0] > 0 for other in candidates if other != one)
    ]
    return tuple(one for one in alive if all(limits[one, other][1] < band for other in alive if other != one))


_UNKNOWN = (-math.inf, math.inf)


def _limits(
    comparison: Comparison, one: Sequence[str], other: Sequence[str], better: Better
) -> tuple[float, float]:
    """One-sided bounds of how far `one` is behind `other`; infinite where too few blocks hold both."""
    full = comparison.fit
    if full is None or full.ms is None or not {*one, *other} <= {*full.grid.labels}:
        return _UNKNOWN
    pairs = zip(arm_of(full.grid, tuple(one)), arm_of(full.grid, tuple(other)), strict=True)
    shared = [pair for pair in pairs if all(count for _, count in pair)]
    blocks = len(shared)
    level = _level(comparison, len(full.grid.labels), blocks)
    if level is None:
        return _UNKNOWN
    d = [mine - theirs for (mine, _), (theirs, _) in shared]
    if any(comparison.flagged(label) for label in (*one, *other)):
        se, df = own_se(d), float(blocks - 1)
    else:
        # The variance of an arm's value in a block, in variances of a cell: half with both columns.
        share = sum(1 / count for pair in shared for _, count in pair) / blocks
        se = math.sqrt(full.ms * share / blocks)
        df = full.df
    width = t_quantile(1 - level, df) * math.hypot(se, math.sqrt(comparison.rounded))
    behind = worsening(statistics.fmean(d), better)
    return behind - width, behind + width


def _level(comparison: Comparison, columns: int, blocks: int) -> float | None:
    """The one-sided level of a single bound; None below the blocks that a verdict needs."""
    if comparison.looks is not None:
        levels = comparison.looks.levels_at(blocks)
        return None if levels is None else levels[1] / 2
    arms = columns - len(comparison.reference)
    return comparison.alpha / arms if blocks >= MIN_BOOTS_FOR_VERDICT and arms else None
