"""From iterations to cells: medians, what is left out, and why."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.analysis.data import Study, columns_of, noisy_ms, study_of
from vnuma.analysis.cells import Cells, collect, grid
from vnuma.analysis.records import ELAPSED, CellRecord, Series, design_of
from vnuma.domain.study.study import Study as StudyFile


def _study(iterations: tuple[float, ...] = (1.0, 1.001, 0.999)) -> Study:
    return study_of(noisy_ms(3, 3, 0.01), columns_of(("2x8",)), sizes=(500, 1000), iterations=iterations)


def _collect(study: Study) -> Cells:
    return collect(study.series, study.cells, study.design, vm="sql16", form="client", measure=ELAPSED)


def test_cell_value_is_mean_over_sizes_of_log_median() -> None:
    """Y is the plain mean over sizes of ln(median of the timed iterations)."""
    study = study_of(
        np.array([[100.0, 110.0]]), columns_of(("2x8",), a_a=False), sizes=(10, 20), iterations=(1, 1.2, 7)
    )
    boot = _collect(study).boots[0]
    assert boot.medians == pytest.approx((120.0, 480.0))
    assert boot.log_mean == pytest.approx((math.log(120) + math.log(480)) / 2)


def _drop(wanted: Callable[[CellRecord], bool], outcome: str, reason: str) -> Study:
    return _study().drop(wanted, outcome, reason)


def _series(change: Callable[[Series], Series | None]) -> Study:
    study = _study()
    study.series = [changed for one in study.series if (changed := change(one))]
    return study


def _one(cell: CellRecord) -> bool:
    return (cell.label, cell.block) == ("2x8", 2)


SHORT = "the median at size 500 is 0 ms: too short for the clock, use larger sizes"


@pytest.mark.parametrize(
    ("study", "gaps"),
    [
        (_drop(_one, "failed", "tools_timeout"), {(2, "failed", "tools_timeout")}),
        (_drop(_one, "claimed", ""), {(2, "not run", "the cell is being run")}),
        # One size without a time: never a mean of what is left. 0 ms has no logarithm.
        (
            _series(lambda s: None if (s.label, s.block, s.size) == ("2x8", 3, 1000) else s),
            {(3, "not measured", "no elapsed time at size 1000")},
        ),
        (
            _series(
                lambda s: s._replace(elapsed_ms=(0.0, 0.0, 0.0)) if (s.label, s.size) == ("2x8", 500) else s
            ),
            {(block, "not measured", SHORT) for block in (1, 2, 3)},
        ),
    ],
    ids=["failed", "running", "a size without a time", "0 ms"],
)
def test_a_cell_without_a_value_is_missing_with_its_reason(
    study: Study, gaps: set[tuple[int, str, str]]
) -> None:
    """The whole cell has no value; the others keep theirs."""
    cells = _collect(study)
    holes = np.isnan(grid(cells.boots, ["1x16", "2x8"], lambda boot: boot.log_mean).y)

    assert {(gap.block, gap.outcome, gap.reason) for gap in cells.missing} == gaps
    assert {gap.label for gap in cells.missing} == {"2x8"}
    assert len(gaps) == 3 or {(row + 1, column) for row, column in zip(*np.nonzero(holes), strict=True)} == {
        (block, 1) for block, _, _ in gaps
    }


def test_series_of_a_cell_that_is_not_valid_are_ignored() -> None:
    """Iterations of an interrupted attempt are never analysed, even if they are handed in."""
    study = _study()
    series = list(study.series)
    study.drop(lambda cell: cell.block == 1, outcome="invalid", reason="topology_mismatch")
    study.series = series
    cells = _collect(study)
    assert {boot.block for boot in cells.boots} == {2, 3}
    assert {gap.outcome for gap in cells.missing} == {"invalid"}


@pytest.mark.parametrize(
    ("outcome", "reason", "not_begun", "ended_by"),
    [("pending", "", 1, ""), ("skipped", "precise", 0, "precise")],
)
def test_blocks_that_were_not_begun_are_no_missing_cells(
    outcome: str, reason: str, not_begun: int, ended_by: str
) -> None:
    """Their number is told, unless the declared rule left them out; cells of a begun block are listed."""
    study = _study().drop(_one, "pending", "").drop(lambda cell: cell.block == 3, outcome, reason)
    cells = _collect(study)
    assert (cells.blocks_not_begun, cells.ended_by) == (not_begun, ended_by)
    assert [(gap.label, gap.block, gap.outcome) for gap in cells.missing] == [("2x8", 2, "not run")]


def test_a_second_attempt_at_a_cell_is_refused() -> None:
    """Iterations of two attempts at one cell must not be mixed."""
    study = _study()
    study.series.append(study.series[0])
    with pytest.raises(ValueError, match="two series for 1x16, block 1, size 500"):
        _collect(study)


def test_grid_leaves_out_columns_without_cells() -> None:
    """A column that never gave a value is not a column of NaN."""
    study = _study()
    study.drop(lambda cell: cell.label == "2x8")
    found = grid(_collect(study).boots, [c.label for c in study.design.columns], lambda boot: boot.log_mean)
    assert found.labels == ("1x16", "1x16 (A/A)")
    assert found.y.shape == (3, 2)


def test_design_of_a_study_file() -> None:
    """The design takes columns, sizes and forms from the study, the A/A column among them."""
    study = StudyFile.model_validate(
        {"name": "a", "vm": "sql16", "vcpus": 16, "reference": "1x16", "arms": ["1x16", "2x8"]}
    )
    design = design_of(study)
    assert [(c.label, c.arm) for c in design.columns] == [
        ("1x16", "1x16"),
        ("1x16 (A/A)", "1x16"),
        ("2x8", "2x8"),
    ]
    assert design.reference_labels == ("1x16", "1x16 (A/A)")
    assert (design.sizes, design.forms, design.blocks, design.order) == (
        (500, 1000, 2000, 3000),
        ("client", "server"),
        8,
        "randomised",
    )
