"""Where one word over all sizes hides another at one of them.

The word over all sizes is about their mean: an arm that is slower at small sizes and faster at large ones
may come out equivalent. Words at single sizes hold together at 1 - alpha over all arms and sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from vnuma.analysis.result import ArmResult, SizeApart, SizeResult
from vnuma.analysis.verdict import Word
from vnuma.analysis.wording import headline


def sizes_apart(arms: Sequence[ArmResult], sizes: Sequence[SizeResult]) -> tuple[SizeApart, ...]:
    """Sizes whose word says something else than the arm's own over all sizes, arm by arm.

    "Undecided" and "too few boots" say nothing else: one size holds less than all of them.
    """
    return tuple(
        SizeApart(arm.arm, size.size, item.verdict)
        for arm in arms
        for size in sizes
        for item in size.arms
        if item.arm == arm.arm and item.verdict.word not in (Word.UNDECIDED, Word.TOO_FEW, arm.verdict.word)
    )


def apart_sentences(apart: Iterable[SizeApart], size_word: str) -> Iterator[str]:
    """As in "At single sizes 8x2 is slower by 3.1% (2.0 to 4.2) at 500 rows a side."."""
    for arm, found in groupby(apart, key=lambda item: item.arm):
        parts = [f"{headline(item.verdict)} at {item.size:,}" for item in found]
        yield f"At single sizes {arm} is {' and '.join(parts)} {size_word}."
