"""What a workload measures: its direction decides words, and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.analysis.data import (
    G1_MS,
    FloatArray,
    Study,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    verdict_of,
)
from vnuma.analysis.analyse import analyse
from vnuma.analysis.checks import ControlCheck, FirstIteration
from vnuma.analysis.records import Measure, PositiveControl, measure_of
from vnuma.analysis.wording import headline
from vnuma.domain.workloads.metric import Metric

THROUGHPUT = measure_of(Metric("throughput", "calls/s", "higher"))


def by_throughput(study: Study, measure: Measure = THROUGHPUT) -> Study:
    """The study's figures as values of that measure."""
    return Study(
        dataclasses.replace(study.design, measures={"client": measure}),
        [s._replace(elapsed_ms=(30_000.0,) * len(s.elapsed_ms), value=s.elapsed_ms) for s in study.series],
        study.cells,
    )


@pytest.mark.parametrize(
    ("ms", "arm", "said", "recommended"),
    [
        (G1_MS, "16x1", "faster by 3.7% (3.2 to 4.2)", ("16x1",)),
        (noisy_ms(8, 6, 0.003, (0, 0, -0.04)), "2x8", "slower by 3.9% (3.6 to 4.2)", None),
    ],
    ids=["more", "less"],
)
def test_more_throughput_is_faster_and_less_is_slower(
    ms: FloatArray, arm: str, said: str, recommended: tuple[str, ...] | None
) -> None:
    """By as much, in positive numbers."""
    found = analysed(by_throughput(study_of(ms, columns_of())))

    assert headline(verdict_of(found, arm)).startswith(said)
    assert recommended is None or found.recommended == recommended


@pytest.mark.parametrize(("effect", "passed"), [(-0.05, True), (0.05, False)])
def test_a_control_expected_slower_must_give_less(effect: float, passed: bool) -> None:
    """Where higher is better, a control is found slower when its figure is lower."""
    study = by_throughput(study_of(noisy_ms(8, 6, 0.003, (0, 0, 0, 0, 0, effect)), columns_of()))
    found = analysed(study, positive_control=PositiveControl("16x1"))

    assert found.positive_control == ControlCheck("16x1", "slower", passed)


@pytest.mark.parametrize(("first", "alarm"), [(0.9, True), (1.1, False)])
def test_a_first_iteration_alarms_when_it_gives_less(first: float, alarm: bool) -> None:
    """A cold first iteration has a lower throughput; a higher one does not show a missing warm-up."""
    iterations = (first, 1.0, 1.001, 0.999)
    check = analysed(by_throughput(study_of(G1_MS, columns_of(), iterations=iterations))).first_iteration

    assert isinstance(check, FirstIteration)
    assert check.alarm is alarm


@pytest.mark.parametrize(
    ("fixed_work", "cpu_ms", "metrics"),
    [
        (True, None, [("value", True)]),
        (True, 9_000.0, [("value", True), ("cpu_ms", False)]),
        (False, 9_000.0, [("value", True)]),
    ],
)
def test_companions_are_analysed_where_they_are_results(
    fixed_work: bool, cpu_ms: float | None, metrics: list[tuple[str, bool]]
) -> None:
    """The length of a throughput's window is none; nor its CPU time, where more calls fit into the window."""
    study = by_throughput(study_of(G1_MS, columns_of()))
    series = [
        s._replace(cpu_ms=tuple(cpu_ms and cpu_ms + (value or 0) for value in s.value)) for s in study.series
    ]
    design = dataclasses.replace(study.design, fixed_work=fixed_work)

    assert [(item.metric, item.primary) for item in analyse(series, study.cells, design).analyses] == metrics


def test_a_value_that_is_missing_is_named_with_its_measure() -> None:
    """Reasons speak of what was to be measured, in its unit."""
    study = by_throughput(study_of(G1_MS, columns_of()))
    unmeasured = {"2x8": (None, None, None), "4x4": (0.0, 0.0, 0.0)}
    study.series = [s._replace(value=unmeasured.get(s.label, s.value)) for s in study.series]

    assert {item.label: item.reason for item in analysed(study).missing} == {
        "2x8": "no throughput at size 2000",
        "4x4": "the median at size 2000 is 0 calls/s",
    }


def test_coarse_figures_are_coarse_in_any_unit() -> None:
    """Few distinct values are a coarse grid whether they are times or rates."""
    study = study_of(G1_MS // 1000, columns_of(), iterations=(1.0, 1.0, 1.0))

    assert {"coarse_clock"} <= caution_ids(analysed(study)) & caution_ids(analysed(by_throughput(study)))


def test_growth_is_per_doubling_of_what_sizes_count() -> None:
    """Rows a side double the rows four times over; connections double as they stand."""
    sizes = (500, 1000, 2000)
    sided = study_of(noisy_ms(8, 6, 0.002), columns_of(), sizes=sizes)
    counted = Study(dataclasses.replace(sided.design, size_word="connections"), sided.series, sided.cells)
    rows, connections = (analysed(item).growth for item in (sided, counted))

    assert isinstance(rows, tuple)
    assert isinstance(connections, tuple)
    assert {item.doubled for item in connections} == {"connections"}
    assert [item.points for item in connections] == pytest.approx([2 * (item.points or 0) for item in rows])
