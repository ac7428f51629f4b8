"""The same differences by other methods, shown but not used for the verdict.

Sign-flip test within blocks: R. A. Fisher 1935, "The Design of Experiments", section 21 (without an effect
both signs of a block's difference are equally likely).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Interval
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.result import ArmResult
from vnuma.analysis.verdict import Label, Verdict
from vnuma.analysis.wording import p_words
from vnuma.domain.workloads.metric import Replicate

MOST_EXACT = 14
"""Up to this many pairs every pattern of signs is tried, beyond it `DRAWS` seeded ones."""
DRAWS = 20_000
LEVEL = 0.05
_SEED = 20190601


@dataclass(frozen=True)
class Sensitivity:
    """One arm by other methods, from its own pairs.

    `left_out` is the range of the estimate, each pair of boots left out once; None below 2 pairs.
    `sign_flip_p` (two-sided) is None below 6. `dissent` names each method that disagrees with the arm's
    verdict, and how. The Hodges-Lehmann estimate is in the arm's contrast.
    """

    left_out: Interval | None
    sign_flip_p: float | None
    dissent: tuple[str, ...]


def sensitivity(arm: ArmResult) -> Sensitivity:
    """Analyse an arm's pairs by the other methods; a withheld verdict has no dissent."""
    d = arm.contrast.differences
    left_out = leave_one_out(d) if len(d) > 1 else None
    p = sign_flip_p(d) if len(d) >= MIN_BOOTS_FOR_VERDICT else None
    return Sensitivity(left_out, p, tuple(_dissent(arm, left_out, p)))


def leave_one_out(differences: Sequence[float]) -> Interval:
    """The lowest and highest mean of all but one difference (ln scale); from two on."""
    d = np.asarray(differences, dtype=np.float64)
    means = (d.sum() - d) / (len(d) - 1)
    return Interval(math.exp(means.min()), math.exp(means.max()))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p of the mean among all patterns of signs; beyond 14 differences among 20,000 seeded ones.

    Drawn patterns include the observed one (B. Phipson and G. K. Smyth 2010, Stat. Appl. Genet. Mol. Biol.
    9:39), so that p is never 0.
    """
    d = np.asarray(differences, dtype=np.float64)
    sums = np.abs(_signs(len(d)) @ d)
    # Sums that differ only by rounding are ties.
    as_far = int((sums >= abs(d.sum()) - 1e-12).sum())
    return as_far / len(sums) if len(d) <= MOST_EXACT else (as_far + 1) / (len(sums) + 1)


@lru_cache(maxsize=16)
def _signs(n: int) -> FloatArray:
    """Patterns of signs; the first sign is fixed, since the mirrored half gives the same sums."""
    if n > MOST_EXACT:
        return np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(DRAWS, n))
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n) & 1
    return np.where(bits == 1, -1.0, 1.0)


def _dissent(arm: ArmResult, left_out: Interval | None, p: float | None) -> Iterator[str]:
    verdict = arm.verdict
    if verdict.label in (Label.SLOWER, Label.FASTER):
        yield from _against_direction(verdict, left_out, p)
    if verdict.label is Label.EQUIVALENT:
        yield from _against_equivalence(arm, left_out)


def _against_direction(verdict: Verdict, left_out: Interval | None, p: float | None) -> Iterator[str]:
    if verdict.rank_supports is False:
        yield "the Hodges-Lehmann interval contains no difference"
    if left_out is not None and left_out.low <= 1 <= left_out.high:
        yield _without_one("the sign of the estimate changes", verdict.replicate)
    if p is not None and p > LEVEL:
        yield f"the sign-flip test gives {p_words(p)}"


def _against_equivalence(arm: ArmResult, left_out: Interval | None) -> Iterator[str]:
    band = 1 + arm.verdict.margin
    rank = arm.contrast.rank
    if rank is not None and not 1 / band <= rank.ratio <= band:
        yield "the Hodges-Lehmann estimate lies outside the band"
    if left_out is not None and not (1 / band <= left_out.low and left_out.high <= band):
        yield _without_one("the estimate leaves the band", arm.verdict.replicate)


def _without_one(what: str, replicate: Replicate) -> str:
    return f"{what} without a single {replicate}"
