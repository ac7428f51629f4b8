"""From samples to cells: medians, what is left out, and why."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.analysis.data import Study, columns_of, noisy_ms, study_of
from vnuma.analysis.cells import Cells, collect, grid
from vnuma.analysis.records import ELAPSED, design_of
from vnuma.domain.study.study import Study as StudyFile


def _study(iterations: tuple[float, ...] = (1.0, 1.001, 0.999)) -> Study:
    return study_of(noisy_ms(3, 3, 0.01), columns_of(("2x8",)), sizes=(500, 1000), iterations=iterations)


def _collect(study: Study) -> Cells:
    return collect(study.samples, study.cells, study.design, vm="sql16", form="client", measure=ELAPSED)


def test_cell_value_is_mean_over_sizes_of_log_median() -> None:
    """Y is the plain mean over sizes of ln(median of the timed iterations), warm-ups left out."""
    study = study_of(
        np.array([[100.0, 110.0]]), columns_of(("2x8",), a_a=False), sizes=(10, 20), iterations=(1, 1.2, 7)
    )
    boot = _collect(study).boots[0]
    assert boot.medians == pytest.approx((120.0, 480.0))
    assert boot.log_mean == pytest.approx((math.log(120) + math.log(480)) / 2)


def test_failed_cells_are_missing_with_their_reason() -> None:
    """A cell that failed has no value, and says how and why."""
    study = _study()
    study.drop(lambda cell: cell.label == "2x8" and cell.block == 2)
    cells = _collect(study)
    (gap,) = cells.missing
    assert (gap.label, gap.block, gap.outcome, gap.reason) == ("2x8", 2, "failed", "tools_timeout")
    holes = np.isnan(grid(cells.boots, ["1x16", "2x8"], lambda boot: boot.log_mean).y)
    assert holes.tolist() == [[False, False], [False, True], [False, False]]


def test_samples_of_a_cell_that_is_not_valid_are_ignored() -> None:
    """Samples of an interrupted attempt are never analysed, even if they are handed in."""
    study = _study()
    samples = list(study.samples)
    study.drop(lambda cell: cell.block == 1, outcome="invalid", reason="topology_mismatch")
    cells = collect(samples, study.cells, study.design, vm="sql16", form="client", measure=ELAPSED)
    assert {boot.block for boot in cells.boots} == {2, 3}
    assert {gap.outcome for gap in cells.missing} == {"invalid"}


def test_a_missing_size_makes_the_cell_missing() -> None:
    """One size without a time: the whole cell has no value, never a mean of what is left."""
    study = _study()
    study.samples = [s for s in study.samples if not (s.label == "2x8" and s.block == 3 and s.size == 1000)]
    (gap,) = _collect(study).missing
    assert (gap.block, gap.outcome, gap.reason) == (3, "not measured", "no elapsed time at size 1000")


def test_a_median_of_zero_is_missing() -> None:
    """A query too short for the clock has no logarithm: missing with a reason, not zero."""
    study = _study()
    study.samples = [
        s._replace(elapsed_ms=0.0) if s.label == "2x8" and s.size == 500 else s for s in study.samples
    ]
    assert {gap.reason for gap in _collect(study).missing} == {
        "the median at size 500 is 0 ms: too short for the clock, use larger sizes"
    }


def test_pending_blocks_are_counted_and_pending_cells_listed() -> None:
    """Blocks never begun are a number; cells of a begun block that did not run are listed."""
    study = _study()
    study.drop(
        lambda cell: cell.block == 3 or (cell.block == 2 and cell.label == "2x8"),
        outcome="pending",
        reason="",
    )
    cells = _collect(study)
    assert cells.blocks_not_begun == 1
    assert [(gap.label, gap.block, gap.outcome) for gap in cells.missing] == [("2x8", 2, "not run")]


def test_a_running_cell_and_a_block_left_out_by_the_rule() -> None:
    """A cell that is being run is not a failure; blocks that the rule left out are not missing ones."""
    study = _study()
    study.drop(lambda cell: cell.block == 2 and cell.label == "2x8", outcome="claimed", reason="")
    study.drop(lambda cell: cell.block == 3, outcome="skipped", reason="precise")
    cells = _collect(study)
    assert (cells.blocks_not_begun, cells.ended_by) == (0, "precise")
    (gap,) = cells.missing
    assert (gap.outcome, gap.reason) == ("not run", "the cell is being run")


def test_the_same_iteration_twice_is_refused() -> None:
    """Samples of two attempts at one cell must not be mixed."""
    study = _study()
    study.samples.append(next(s for s in study.samples if not s.warmup))
    with pytest.raises(ValueError, match="two samples for 1x16, block 1, iteration 1"):
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
