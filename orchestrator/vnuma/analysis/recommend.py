"""Which arms may be recommended: the fastest, or equivalent to it."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.analysis.measure import worsening
from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Word


def recommend(reference: str, arms: Sequence[ArmResult]) -> tuple[str, ...]:
    """Without a faster arm: the reference and what is equivalent to it; else the fastest arm alone.

    Empty while an arm's words are withheld or no arm has a word: a recommendation needs one.
    Comparing faster arms with each other would be exploratory, so only the fastest is named.
    """
    if any(arm.verdict.withheld for arm in arms):
        return ()
    faster = [arm for arm in arms if arm.verdict.word is Word.FASTER]
    if faster:
        return (min(faster, key=_slowness).arm,)
    if all(arm.verdict.word in (Word.UNDECIDED, Word.TOO_FEW) for arm in arms):
        return ()
    return (reference, *(arm.arm for arm in arms if arm.verdict.word is Word.EQUIVALENT))


def _slowness(arm: ArmResult) -> float:
    """How much slower than the reference, on the ln scale; below 0 is faster."""
    return worsening(arm.contrast.log_ratio or 0.0, arm.verdict.better)
