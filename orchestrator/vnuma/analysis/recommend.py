"""Which arms may be recommended: the fastest, or equivalent to it."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.analysis.records import worsening
from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Label


def recommend(reference: str, arms: Sequence[ArmResult]) -> tuple[str, ...]:
    """The fastest arm alone; without a faster one, the reference and its equivalents.

    Empty while an arm's verdict is withheld. Without a faster arm, also empty while a measured arm is
    undecided, as that arm may be faster. Comparing faster arms with each other would be exploratory, so only
    the fastest is named.
    """
    if any(arm.verdict.withheld for arm in arms):
        return ()
    faster = [arm for arm in arms if arm.verdict.label is Label.FASTER]
    if faster:
        return (min(faster, key=_slowness).arm,)
    if undecided(arms) or all(arm.verdict.left_out for arm in arms):
        return ()
    return (reference, *(arm.arm for arm in arms if arm.verdict.label is Label.EQUIVALENT))


def undecided(arms: Sequence[ArmResult]) -> tuple[str, ...]:
    """The measured arms that may still turn out to be faster."""
    open_words = (Label.UNDECIDED, Label.TOO_FEW)
    return tuple(arm.arm for arm in arms if arm.verdict.label in open_words and not arm.verdict.left_out)


def _slowness(arm: ArmResult) -> float:
    """How much slower than the reference, on the ln scale; below 0 is faster."""
    return worsening(arm.contrast.log_ratio or 0.0, arm.verdict.better)
