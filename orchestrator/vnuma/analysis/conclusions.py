"""What verdicts say together: which arms may be recommended, and the sizes that differ from the whole.

The overall verdict is about the mean: an arm that is slower at small sizes and faster at large ones may be
equivalent overall. Verdicts at single sizes hold together at 1 - alpha over all arms and sizes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from vnuma.analysis.records import worsening
from vnuma.analysis.result import ArmResult, DifferingSize, SizeResult
from vnuma.analysis.verdict import Label, Verdict, Withheld
from vnuma.analysis.wording import together
from vnuma.domain.workloads.metric import sized
from vnuma.words.plain_text import listed

_OPPOSITE = {Label.SLOWER: Label.FASTER, Label.FASTER: Label.SLOWER}


def without_opposed(arms: Sequence[ArmResult], sizes: Sequence[SizeResult]) -> tuple[ArmResult, ...]:
    """The arms; one that is slower at a size and faster at another, or overall, has no overall verdict."""
    return tuple(_undecided_if_opposed(arm, sizes) for arm in arms)


def _undecided_if_opposed(arm: ArmResult, sizes: Sequence[SizeResult]) -> ArmResult:
    said = {item.verdict.label for size in sizes for item in size.arms if item.arm == arm.arm}
    if not any(_OPPOSITE.get(word) in {*said, arm.verdict.label} for word in said):
        return arm
    opposed = replace(
        arm.verdict,
        label=Label.UNDECIDED,
        withheld=Withheld.SIZES_OPPOSED,
        beyond_margin=False,
        detectable=False,
        rank_supports=None,
        blocks_needed=None,
    )
    return replace(arm, verdict=opposed)


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
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}."


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
