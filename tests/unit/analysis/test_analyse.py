"""The whole analysis on runs as they come: complete, interrupted, small, empty."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.unit.analysis.data import (
    ARMS,
    EFFECTS,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    usual_study,
)
from vnuma.analysis.analyse import analyse, precision_look
from vnuma.analysis.checks import AaCheck, ControlCheck, Drift, Slope
from vnuma.analysis.growth import Growth
from vnuma.analysis.outliers import Bimodality
from vnuma.analysis.records import NotEvaluated, PositiveControl
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label, Withheld


def _words(analysis: Analysis) -> dict[str, Label]:
    return {item.arm: item.verdict.label for item in analysis.arms}


def test_a_complete_run() -> None:
    """Every part of a complete run is evaluated, and the words follow the truth it was made with."""
    found = analysed(usual_study())
    assert _words(found) == {
        "2x8": Label.EQUIVALENT,
        "4x4": Label.SLOWER,
        "8x2": Label.SLOWER,
        "16x1": Label.SLOWER,
    }
    assert found.recommended == ("1x16", "2x8")
    assert (found.blocks, found.complete_blocks, found.df, len(found.points)) == (8, 8, 35, 48)
    assert isinstance(found.a_a, AaCheck)
    assert isinstance(found.drift, Drift)
    assert isinstance(found.drift.within_blocks, Slope)
    assert isinstance(found.bimodality, Bimodality)
    assert isinstance(found.growth, tuple)
    assert isinstance(found.detectable_effect, float)
    assert [row.size for row in found.table] == [500, 2000]
    assert found.withheld is None
    assert not found.missing


def test_the_largest_gap_between_sizes_is_named() -> None:
    """Equivalent overall does not mean equivalent at every size: the size with the largest gap is named."""
    study = usual_study()
    study.samples = [
        s._replace(elapsed_ms=(s.elapsed_ms or 0) * 1.03) if (s.label, s.size) == ("2x8", 2000) else s
        for s in study.samples
    ]
    gap = next(item for item in analysed(study).largest_gaps if item.arm == "2x8")
    assert gap.size == 2000
    assert gap.ratio == pytest.approx(1.03, abs=0.005)


def test_growth_of_the_gap_is_found() -> None:
    """A gap that widens by 1 point per doubling of rows is found as such."""
    study = usual_study(sd=0.001)
    study.samples = [
        s._replace(elapsed_ms=(s.elapsed_ms or 0) * 2 ** (0.01 / np.log(2) * np.log2((s.size / 500) ** 2)))
        if s.label == "16x1"
        else s
        for s in study.samples
    ]
    found = analysed(study).growth
    assert isinstance(found, tuple)
    trends: dict[str, Growth] = {item.arm: item for item in found}
    assert trends["16x1"].trend == "falls behind"
    assert trends["16x1"].points == pytest.approx(1.0, abs=0.01)


def test_a_a_alarm_withholds_all_words() -> None:
    """A reference that differs from itself withholds every word."""
    ms = noisy_ms(8, 6, 0.002, EFFECTS)
    ms[:, 1] *= 1.02
    found = analysed(study_of(ms, columns_of()))
    assert found.withheld is Withheld.A_A_ALARM
    assert "aa_alarm" in caution_ids(found)


def test_without_a_a() -> None:
    """No A/A: the words stand, the check is not evaluated, and the advice says how to have it."""
    ms = noisy_ms(8, 5, 0.002, EFFECTS[1:])
    found = analysed(study_of(ms, columns_of(a_a=False)))
    assert isinstance(found.a_a, NotEvaluated)
    assert "no_aa" in caution_ids(found)
    assert _words(found)["16x1"] is Label.SLOWER


def test_a_a_alone() -> None:
    """Only the reference under two labels: the A/A check is the whole result."""
    found = analysed(study_of(noisy_ms(8, 2, 0.002), columns_of(())))
    assert isinstance(found.a_a, AaCheck)
    assert (found.arms, found.recommended) == ((), ())
    assert isinstance(found.detectable_effect, NotEvaluated)


def test_blocks_that_give_no_verdict_are_not_said_to_detect_anything() -> None:
    """Five blocks have a spread and no word; six have both."""
    five, six = (analysed(usual_study(blocks)).detectable_effect for blocks in (5, 6))

    assert isinstance(five, NotEvaluated)
    assert isinstance(six, float)


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_few_blocks_are_provisional(blocks: int) -> None:
    """Below six blocks: intervals, but no words, no recommendation, and advice."""
    found = analysed(usual_study(blocks))
    assert set(_words(found).values()) == {Label.TOO_FEW}
    assert all(item.verdict.interval is not None and item.verdict.provisional for item in found.arms)
    assert found.recommended == ()
    assert "too_few_boots" in caution_ids(found)


def test_one_block_is_descriptive_only() -> None:
    """One block gives medians and ratios, no interval, and says why the rest is not evaluated."""
    found = analysed(usual_study(1))
    assert all(item.verdict.ratio is not None and item.verdict.interval is None for item in found.arms)
    assert found.table[0].cells[2].median is not None
    assert found.ms is None
    assert isinstance(found.a_a, NotEvaluated)
    assert isinstance(found.detectable_effect, NotEvaluated)
    assert isinstance(found.drift, Drift)
    assert isinstance(found.drift.between_blocks, NotEvaluated)


def test_an_interrupted_run_uses_what_there_is() -> None:
    """A run that stopped inside block 7 keeps block 7's cells and counts boots per arm."""
    study = usual_study()
    study.drop(
        lambda c: c.block == 8 or (c.block == 7 and c.label in ("8x2", "16x1")), outcome="pending", reason=""
    )
    found = analysed(study)
    assert (found.blocks, found.complete_blocks, found.blocks_not_begun) == (7, 6, 1)
    assert {item.arm: item.verdict.boots for item in found.arms} == {"2x8": 7, "4x4": 7, "8x2": 6, "16x1": 6}
    assert Label.TOO_FEW not in _words(found).values()
    assert {"cells_missing", "blocks_not_begun"} <= caution_ids(found)


def test_an_arm_that_never_ran() -> None:
    """An arm without any cell is named, has no figures, and does not widen the others' intervals."""
    study = usual_study()
    study.drop(lambda c: c.label == "8x2")
    found = analysed(study)
    arm = next(item for item in found.arms if item.arm == "8x2")
    assert (arm.verdict.label, arm.verdict.boots, arm.verdict.ratio) == (Label.TOO_FEW, 0, None)
    assert next(cell for cell in found.table[0].cells if cell.arm == "8x2").median is None
    assert "arm_missing" in caution_ids(found)
    three = study_of(
        np.delete(noisy_ms(8, 6, 0.003, EFFECTS), 4, axis=1),
        columns_of(("2x8", "4x4", "16x1")),
        sizes=(500, 2000),
    )
    assert [i.contrast.inference for i in found.arms if i.arm != "8x2"] == [
        i.contrast.inference for i in analysed(three).arms
    ]


@pytest.mark.parametrize("kept", [1, 2])
def test_few_a_a_cells_take_no_verdict_away(kept: int) -> None:
    """An A/A column that lost most of its cells leaves the verdicts that the others allow."""
    study = usual_study()
    study.drop(lambda c: c.label == "1x16 (A/A)" and c.block > kept)
    gone = usual_study()
    gone.drop(lambda c: c.label == "1x16 (A/A)")
    assert _words(analysed(study)) == _words(analysed(gone))


def test_the_reference_never_ran() -> None:
    """Without the reference nothing is compared; the medians are still shown."""
    study = usual_study()
    study.drop(lambda c: c.arm == "1x16")
    found = analysed(study)
    assert set(_words(found).values()) == {Label.TOO_FEW}
    assert {item.verdict.ratio for item in found.arms} == {None}
    assert "reference_missing" in caution_ids(found)
    assert found.table[0].cells[1].median is not None
    assert found.table[0].cells[0].median is None
    assert isinstance(found.drift, NotEvaluated)


def test_all_cells_invalid() -> None:
    """A run without one valid cell says so first, and gives no number."""
    study = usual_study()
    study.drop(lambda c: True, outcome="invalid", reason="topology_mismatch")
    result = analyse(study.samples, study.cells, study.design)
    (found,) = result.primary
    assert found.cautions[0].id == "no_data"
    assert found.points == ()
    assert {item.verdict.ratio for item in found.arms} == {None}


def test_a_failed_control_withholds_equivalence() -> None:
    """A declared control that is not found slower withholds "equivalent" and says so."""
    ms = noisy_ms(8, 6, 0.002)
    study = study_of(ms, columns_of())
    study.design = dataclasses.replace(study.design, positive_control=PositiveControl("16x1"))
    found = analysed(study)
    assert isinstance(found.positive_control, ControlCheck)
    assert not found.positive_control.passed
    withheld = {item.arm: item.verdict.withheld for item in found.arms}
    assert withheld == dict.fromkeys(ARMS[:3], Withheld.CONTROL_FAILED) | {"16x1": None}
    assert "control_failed" in caution_ids(found)
    assert found.recommended == ()


def test_forms_metrics_and_vms_stay_apart() -> None:
    """One analysis per VM, form and recorded metric; only form one with elapsed time is primary."""
    study = usual_study()
    server = [s._replace(form="server", cpu_ms=s.elapsed_ms) for s in study.samples]
    other = [s._replace(vm="sql17") for s in study.samples]
    cells = study.cells + [dataclasses.replace(c, vm="sql17") for c in study.cells]
    design = dataclasses.replace(study.design, forms=("client", "server"), vms=("sql16", "sql17"))
    result = analyse(study.samples + server + other, cells, design)
    shape = [(a.vm, a.form, a.metric, a.primary) for a in result.analyses]
    assert shape == [
        ("sql16", "client", "elapsed_ms", True),
        ("sql16", "server", "elapsed_ms", False),
        ("sql16", "server", "cpu_ms", False),
        ("sql17", "client", "elapsed_ms", True),
        ("sql17", "server", "elapsed_ms", False),
    ]
    assert _words(result.primary[0]) == _words(result.primary[1])
    unmeasured = result.analysis("sql17", "server", "elapsed_ms")
    assert unmeasured is not None
    assert {gap.outcome for gap in unmeasured.missing} == {"not measured"}
    assert result.analysis("sql17", "server", "cpu_ms") is None


def test_identical_times_are_no_finer_than_their_step() -> None:
    """Times that differ by 10 ms or not at all decide nothing finer, and divide nothing by zero."""
    ms = np.tile(np.array([100.0, 100, 100, 110, 160, 40]), (8, 1))
    found = analysed(study_of(ms, columns_of(), iterations=(1.0, 1.0, 1.0)))
    assert _words(found) == {
        "2x8": Label.UNDECIDED,
        "4x4": Label.UNDECIDED,
        "8x2": Label.SLOWER,
        "16x1": Label.FASTER,
    }
    assert all((item.verdict.half_width or 0) > 0.05 for item in found.arms)
    assert "coarse_clock" in caution_ids(found)


def test_a_coarse_clock_shows_no_equivalence() -> None:
    """Steps of 1.2% cannot show equality within 1%; the same times in fine steps do."""
    fine = study_of(noisy_ms(12, 6, 0.003, base=400), columns_of())
    coarse = dataclasses.replace(
        fine, samples=[s._replace(elapsed_ms=round((s.elapsed_ms or 0) / 5) * 5.0) for s in fine.samples]
    )
    assert set(_words(analysed(fine)).values()) == {Label.EQUIVALENT}
    assert Label.EQUIVALENT not in _words(analysed(coarse)).values()


@pytest.mark.parametrize(("blocks", "stop", "reason"), [(5, False, "too early"), (6, True, "precise")])
def test_precision_look_on_a_running_study(blocks: int, stop: bool, reason: str) -> None:
    """A quiet host stops at the first look, block 6, and not before, with a block half run."""
    study = usual_study(sd=0.001)
    study.drop(lambda c: c.block > blocks + 1 or (c.block > blocks and c.label != "2x8"), outcome="pending")
    decision = precision_look(study.samples, study.cells, study.design, vm="sql16", target=0.01)
    assert (decision.stop, decision.reason, decision.blocks) == (stop, reason, blocks)


@pytest.mark.parametrize(
    ("outcome", "reason", "withheld"),
    [("pending", "", Withheld.NOT_ENDED), ("skipped", "precise enough", None)],
)
def test_words_wait_for_the_declared_end(outcome: str, reason: str, withheld: Withheld | None) -> None:
    """8 of 10 blocks: no verdict if a person stopped it or it is running; verdicts if the rule ended it."""
    study = study_of(noisy_ms(10, 6, 0.001), columns_of())
    study.drop(lambda cell: cell.block > 8, outcome=outcome, reason=reason)
    (found,) = analyse(study.samples, study.cells, study.design).primary

    assert found.withheld is withheld
    assert {arm.verdict.withheld for arm in found.arms} == {withheld}
    assert all(arm.verdict.interval for arm in found.arms)
    assert bool(found.recommended) is (withheld is None)


def test_words_wait_for_the_last_cell_too() -> None:
    """In the last block, one cell that is still to run is one more look before the end."""
    study = study_of(noisy_ms(8, 6, 0.001), columns_of())
    study.drop(lambda cell: (cell.block, cell.label) == (8, "16x1"), outcome="claimed")
    (found,) = analyse(study.samples, study.cells, study.design).primary

    assert (found.blocks_not_begun, found.withheld) == (0, Withheld.NOT_ENDED)


def test_a_cell_that_was_given_up_does_not_keep_words_back() -> None:
    """The run has ended: that cell failed as often as it was allowed to."""
    study = study_of(noisy_ms(8, 6, 0.001), columns_of())
    study.drop(lambda cell: (cell.block, cell.label) == (8, "16x1"), outcome="failed")
    (found,) = analyse(study.samples, study.cells, study.design).primary

    assert found.withheld is None
