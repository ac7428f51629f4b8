"""The rank companion: the table of Walsh cuts, scipy's exact test, equivariance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vnuma.analysis.rank import rank_estimate, signed_rank_p, walsh_coverage, walsh_cut

PATIENT = settings(deadline=None, max_examples=50)

TABLE = {
    6: (0, 96.9),
    7: (2, 95.3),
    8: (3, 96.1),
    9: (5, 96.1),
    10: (8, 95.1),
    11: (10, 95.8),
    12: (13, 95.8),
    13: (17, 95.2),
    14: (21, 95.1),
    15: (25, 95.2),
    16: (29, 95.6),
}

differences = st.lists(st.floats(-0.1, 0.1).map(lambda x: round(x, 6)), min_size=6, max_size=14)


@pytest.mark.parametrize(("blocks", "cut", "cover"), [(b, *row) for b, row in TABLE.items()])
def test_walsh_table(blocks: int, cut: int, cover: float) -> None:
    """The interval's cut and its exact coverage are those of the published table."""
    assert walsh_cut(blocks) == cut
    assert round(100 * walsh_coverage(blocks), 1) == cover


@pytest.mark.parametrize("blocks", range(6))
def test_no_interval_below_six_blocks(blocks: int) -> None:
    """Five blocks cannot reach 95%: no estimate rather than a weaker one."""
    assert walsh_cut(blocks) is None
    assert rank_estimate([0.01] * blocks) is None
    with pytest.raises(ValueError, match="too few for a rank interval"):
        walsh_coverage(blocks)


@PATIENT
@given(st.lists(st.integers(1, 10_000), min_size=6, max_size=14, unique=True), st.data())
def test_p_is_scipys_exact_wilcoxon(sizes: list[int], data: st.DataObject) -> None:
    """Without ties or zeros the p value is scipy's exact one."""
    d = [size * data.draw(st.sampled_from([-1, 1])) / 1e5 for size in sizes]
    assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize(
    "d",
    [
        (0.01, 0.01, -0.01, 0.02, 0.02, 0.0, 0.03),
        (0.01, 0.02, 0.02, 0.02, -0.03, 0.04),
        (-0.02, 0.01, 0.02, 0.03, 0.03, 0.03, -0.03),
    ],
)
def test_p_with_ties_counts_every_sign_pattern(d: tuple[float, ...]) -> None:
    """With ties and zeros the p value equals the enumeration of all sign patterns."""
    kept = np.array([x for x in d if x])
    ranks = stats.rankdata(np.abs(kept))
    sums = [float(ranks[[bool(m >> i & 1) for i in range(len(kept))]].sum()) for m in range(2 ** len(kept))]
    observed = min(ranks[kept > 0].sum(), ranks[kept < 0].sum())
    assert signed_rank_p(d) == pytest.approx(min(1.0, 2 * np.mean([s <= observed for s in sums])))


@PATIENT
@given(differences)
def test_interval_surrounds_the_estimate(d: list[float]) -> None:
    """Estimate and limits are in order, and within the range of the differences."""
    found = rank_estimate(d)
    assert found is not None
    assert (
        math.exp(min(d)) * (1 - 1e-12)
        <= found.low
        <= found.ratio
        <= found.high
        <= math.exp(max(d)) * (1 + 1e-12)
    )
