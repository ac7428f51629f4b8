"""Which arms may be recommended: the fastest, or equivalent to it."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Word


def recommend(reference: str, arms: Sequence[ArmResult]) -> tuple[str, ...]:
    """Without a faster arm: the reference and what is equivalent to it; else the fastest arm alone.

    Empty while an arm's words are withheld or no arm has a word: a recommendation needs one.
    Comparing faster arms with each other would be exploratory, so only the fastest is named.
    """
    if any(arm.verdict.withheld for arm in arms):
        return ()
    faster = [arm for arm in arms if arm.verdict.word is Word.FASTER and arm.verdict.ratio is not None]
    if faster:
        return (min(faster, key=lambda arm: arm.verdict.ratio or 1.0).arm,)
    if all(arm.verdict.word in (Word.UNDECIDED, Word.TOO_FEW) for arm in arms):
        return ()
    return (reference, *(arm.arm for arm in arms if arm.verdict.word is Word.EQUIVALENT))
