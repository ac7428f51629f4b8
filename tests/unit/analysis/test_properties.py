"""Properties that any data must have: what may not change the answer does not change it."""

from __future__ import annotations

import dataclasses
import math
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.analysis.data import LABELS, FloatArray, Study, columns_of, compare_ms, noisy_ms, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.compare import Comparison
from vnuma.analysis.records import Measure
from vnuma.analysis.result import Analysis

# The first example fills the caches of quadrature nodes: no deadline for a single one.
PATIENT = settings(deadline=None, max_examples=30)
FEW = settings(deadline=None, max_examples=8)


@st.composite
def times(draw: st.DrawFn) -> FloatArray:
    """Complete blocks of six columns with some noise and some effects."""
    blocks = draw(st.integers(2, 9))
    sd = draw(st.sampled_from([0.0005, 0.005, 0.03]))
    effects = draw(st.lists(st.sampled_from([0.0, 0.005, 0.01, -0.02]), min_size=6, max_size=6))
    return noisy_ms(blocks, 6, sd, effects, seed=draw(st.integers(0, 10_000)))


def _figures(comparison: Comparison) -> list[float]:
    figures: list[float] = []
    for contrast in comparison.contrasts:
        i = contrast.inference
        assert i is not None
        assert i.adjusted_p is not None
        limits = (i.interval.low, i.interval.high, i.equivalence.low)
        figures += [contrast.ratio or 0, i.se, i.adjusted_p, *limits]
    return figures


@PATIENT
@given(times(), st.sampled_from([1e-3, 7.0, 1e4]))
def test_the_unit_of_time_does_not_matter(ms: FloatArray, scale: float) -> None:
    """Seconds or milliseconds: every ratio, error and p is the same."""
    assert _figures(compare_ms(ms * scale)) == pytest.approx(_figures(compare_ms(ms)), rel=1e-6, abs=1e-9)


@PATIENT
@given(times())
def test_intervals_nest_and_agree_with_p(ms: FloatArray) -> None:
    """90% lies inside 95%, the estimate inside both, and p < 0.05 exactly when 1 lies outside."""
    for contrast in compare_ms(ms).contrasts:
        i = contrast.inference
        assert i is not None
        assert i.unadjusted is not None
        assert i.adjusted_p is not None
        assert contrast.ratio is not None
        assert i.interval.low <= i.equivalence.low <= contrast.ratio <= i.equivalence.high <= i.interval.high
        assert i.interval.low <= i.unadjusted.low <= i.unadjusted.high <= i.interval.high
        if abs(i.adjusted_p - 0.05) > 1e-6:
            assert (i.adjusted_p < 0.05) == (not i.interval.contains(1.0))


@PATIENT
@given(times())
def test_exchanging_arm_and_reference_inverts_the_ratio(ms: FloatArray) -> None:
    """With two columns, A over B is the reciprocal of B over A, limits included."""
    one = compare_ms(ms[:, [0, 2]], ("R", "2x8")).contrasts[0]
    other = compare_ms(ms[:, [2, 0]], ("R", "2x8")).contrasts[0]
    assert one.inference is not None
    assert other.inference is not None
    assert one.ratio == pytest.approx(1 / (other.ratio or math.nan))
    assert one.inference.interval.low == pytest.approx(1 / other.inference.interval.high)
    assert one.inference.adjusted_p == pytest.approx(other.inference.adjusted_p)


@PATIENT
@given(times(), st.integers(2, 5), st.sampled_from([0.9, 1.5]))
def test_changing_one_arm_leaves_the_others_estimates(ms: FloatArray, arm: int, factor: float) -> None:
    """Multiplying one arm multiplies its own ratio and moves nothing else."""
    changed = ms.copy()
    changed[:, arm] *= factor
    before, after = compare_ms(ms).contrasts, compare_ms(changed).contrasts
    expected = [(c.ratio or 0) * (factor if c.arm == LABELS[arm] else 1) for c in before]
    assert [c.ratio for c in after] == pytest.approx(expected)


def _analyse(ms: FloatArray) -> Analysis:
    study = study_of(ms, columns_of(), sizes=(500, 2000))
    return analyse(study.series, study.cells, study.design).primary[0]


@FEW
@given(times())
def test_medians_lie_within_their_range(ms: FloatArray) -> None:
    """Every median lies between its smallest and largest boot; MAD and coverage are in bounds."""
    for row in _analyse(ms).table:
        for cell in row.cells:
            assert cell.low is not None
            assert cell.high is not None
            assert cell.median is not None
            assert cell.mad is not None
            assert cell.coverage is not None
            assert cell.low <= cell.median <= cell.high
            assert 0 <= cell.mad <= cell.high - cell.low
            assert 0 <= cell.coverage < 1


@FEW
@given(times(), st.randoms(use_true_random=False))
def test_the_order_of_series_does_not_matter(ms: FloatArray, random: Random) -> None:
    """Series and cells may come in any order."""
    study = study_of(ms, columns_of())
    first = analyse(study.series, study.cells, study.design)
    random.shuffle(study.series)
    random.shuffle(study.cells)
    assert analyse(study.series, study.cells, study.design) == first


def _turned(study: Study) -> Study:
    """The same cells by a figure of which more is better: 1 / time, as a throughput."""
    throughput = Measure("value", "throughput", "calls/s", "higher")
    return Study(
        dataclasses.replace(study.design, measures={"client": throughput}),
        [s._replace(elapsed_ms=(), value=tuple(1e6 / ms for ms in s.elapsed_ms)) for s in study.series],
        study.cells,
    )


# The nearest two of its figures are as far apart as a clock's steps may be.
NEAREST = np.array(
    [
        [20133.66129655, 19684.66167307, 19948.11181482, 20729.2565964, 20067.83652854, 20342.60077399],
        [19564.01591915, 19863.50000112, 19123.03589969, 19367.19913574, 19224.75653188, 19497.61622153],
    ]
)


@FEW
@given(times())
@example(NEAREST)
def test_time_and_throughput_give_the_same_words(ms: FloatArray) -> None:
    """1 / value with the direction turned: the same verdict for every arm, and mirrored limits."""
    # The median of two iterations does not mirror: the check of the first one takes that of the rest.
    study = study_of(ms, columns_of(), sizes=(500, 2000), iterations=(1.0, 1.0, 1.0))
    slow, fast = (
        analyse(item.series, item.cells, item.design).primary[0] for item in (study, _turned(study))
    )

    assert fast.recommended == slow.recommended
    for one, other in zip(slow.arms, fast.arms, strict=True):
        assert one.verdict.interval is not None
        assert other.verdict.interval is not None
        words = [(item.verdict.label, item.verdict.beyond_margin) for item in (one, other)]
        assert words[0] == words[1]
        assert other.verdict.interval.low == pytest.approx(1 / one.verdict.interval.high)
        assert other.verdict.interval.high == pytest.approx(1 / one.verdict.interval.low)
    assert isinstance(slow.growth, tuple)
    assert isinstance(fast.growth, tuple)
    assert [item.trend for item in fast.growth] == [item.trend for item in slow.growth]
    assert [item.id for item in fast.cautions] == [item.id for item in slow.cautions]


def test_results_hold_only_plain_values() -> None:
    """A result is made of plain Python values, so that it can be written as JSON and compared."""

    def walk(value: object) -> None:
        if dataclasses.is_dataclass(value):
            for item in dataclasses.fields(value):
                walk(getattr(value, item.name))
        elif isinstance(value, tuple):
            for item in value:
                walk(item)
        else:
            assert type(value).__module__ != "numpy", value
            assert not (isinstance(value, float) and not math.isfinite(value)), value

    walk(_analyse(noisy_ms(6, 6, 0.005)))
