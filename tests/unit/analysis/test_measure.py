"""What a workload measures: its direction decides words, and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.analysis.data import G1_MS, Study, columns_of, noisy_ms, study_of
from vnuma.analysis.analyse import analyse
from vnuma.analysis.checks import ControlCheck, FirstIteration
from vnuma.analysis.records import Measure, PositiveControl, measure_of
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label
from vnuma.analysis.wording import headline
from vnuma.domain.workloads.metric import Metric

THROUGHPUT = measure_of(Metric("throughput", "calls/s", "higher"))


def by_throughput(study: Study, measure: Measure = THROUGHPUT) -> Study:
    """The study's figures as values of that measure."""
    return Study(
        dataclasses.replace(study.design, measures={"client": measure}),
        [s._replace(elapsed_ms=30_000.0, value=s.elapsed_ms) for s in study.samples],
        study.cells,
    )


def _run(study: Study) -> Analysis:
    return analyse(study.samples, study.cells, study.design).primary[0]


def test_more_throughput_is_faster() -> None:
    """G1's figures as calls a second: 16x1 gives 3.7% more, and is recommended."""
    found = _run(by_throughput(study_of(G1_MS, columns_of())))
    best = next(arm for arm in found.arms if arm.arm == "16x1")

    assert best.verdict.label is Label.FASTER
    assert headline(best.verdict) == "faster by 3.7% (3.2 to 4.2)"
    assert found.recommended == ("16x1",)


def test_less_throughput_is_slower() -> None:
    """An arm 4% below the reference is slower by as much, in positive numbers."""
    found = _run(by_throughput(study_of(noisy_ms(8, 6, 0.003, (0, 0, -0.04)), columns_of())))
    worse = next(arm for arm in found.arms if arm.arm == "2x8")

    assert worse.verdict.label is Label.SLOWER
    assert headline(worse.verdict).startswith("slower by 3.9% (3.6 to 4.2)")


@pytest.mark.parametrize(("effect", "passed"), [(-0.05, True), (0.05, False)])
def test_a_control_expected_slower_must_give_less(effect: float, passed: bool) -> None:
    """Where higher is better, a control is found slower when its figure is lower."""
    study = by_throughput(study_of(noisy_ms(8, 6, 0.003, (0, 0, 0, 0, 0, effect)), columns_of()))
    study.design = dataclasses.replace(study.design, positive_control=PositiveControl("16x1"))

    assert _run(study).positive_control == ControlCheck("16x1", "slower", passed)


@pytest.mark.parametrize(("first", "alarm"), [(0.9, True), (1.1, False)])
def test_a_first_iteration_alarms_when_it_gives_less(first: float, alarm: bool) -> None:
    """A cold first iteration has a lower throughput; a higher one does not show a missing warm-up."""
    iterations = (first, 1.0, 1.001, 0.999)
    check = _run(by_throughput(study_of(G1_MS, columns_of(), iterations=iterations))).first_iteration

    assert isinstance(check, FirstIteration)
    assert check.alarm is alarm


def test_a_measured_value_has_no_companions_without_samples() -> None:
    """The length of a throughput's window is not a result; CPU time is analysed where recorded."""
    study = by_throughput(study_of(G1_MS, columns_of()))
    alone = analyse(study.samples, study.cells, study.design).analyses
    study.samples = [s._replace(cpu_ms=9_000.0 + (s.value or 0)) for s in study.samples]
    both = analyse(study.samples, study.cells, study.design).analyses

    assert [item.metric for item in alone] == ["value"]
    assert [(item.metric, item.primary) for item in both] == [("value", True), ("cpu_ms", False)]


def test_a_window_of_time_has_no_companions() -> None:
    """More calls in as long a window take more CPU time: no word is said of it."""
    study = by_throughput(study_of(G1_MS, columns_of()))
    study.samples = [s._replace(cpu_ms=s.value, client_ms=20_000.0) for s in study.samples]
    study.design = dataclasses.replace(study.design, fixed_work=False)

    assert [item.metric for item in analyse(study.samples, study.cells, study.design).analyses] == ["value"]


def test_a_value_that_is_missing_is_named_with_its_measure() -> None:
    """Reasons speak of what was to be measured, in its unit."""
    study = by_throughput(study_of(G1_MS, columns_of()))
    study.samples = [s._replace(value={"2x8": None, "4x4": 0.0}.get(s.label, s.value)) for s in study.samples]

    assert {item.label: item.reason for item in _run(study).missing} == {
        "2x8": "no throughput at size 2000",
        "4x4": "the median at size 2000 is 0 calls/s",
    }


def test_coarse_figures_are_coarse_in_any_unit() -> None:
    """Few distinct values are a coarse grid whether they are times or rates."""
    study = study_of(G1_MS // 1000, columns_of(), iterations=(1.0, 1.0, 1.0))

    assert "coarse_clock" in {item.id for item in _run(study).cautions}
    assert "coarse_clock" in {item.id for item in _run(by_throughput(study)).cautions}


def test_growth_is_per_doubling_of_what_sizes_count() -> None:
    """Rows a side double the rows four times over; connections double as they stand."""
    sizes = (500, 1000, 2000)
    sided = study_of(noisy_ms(8, 6, 0.002), columns_of(), sizes=sizes)
    counted = Study(dataclasses.replace(sided.design, size_word="connections"), sided.samples, sided.cells)
    rows, connections = (_run(item).growth for item in (sided, counted))

    assert isinstance(rows, tuple)
    assert isinstance(connections, tuple)
    assert {item.doubled for item in connections} == {"connections"}
    assert [item.points for item in connections] == pytest.approx([2 * (item.points or 0) for item in rows])
