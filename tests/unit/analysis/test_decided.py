"""Arms that leave when they have a verdict: the worked run of an independent implementation, and the rule."""

from __future__ import annotations

import dataclasses
import math

import pytest
from scipy import stats

from tests.unit.analysis.data import G1_MS, Study, analysed, columns_of, noisy_ms, study_of
from vnuma.analysis.analyse import decided_look
from vnuma.analysis.records import CellRecord, PositiveControl
from vnuma.analysis.result import ArmResult
from vnuma.analysis.stopping import boundaries, levels
from vnuma.analysis.verdict import Label, Withheld

LEFT = ("4x4", "8x2", "16x1")
LEFT_IN = ("2x8", "4x4", "8x2")


def decided(study: Study, most: int, *, until: int, left: dict[str, int] | None = None) -> Study:
    """The study as far as block `until` of at most `most`, where arms left after the given blocks."""
    left = left or {}
    study.design = dataclasses.replace(study.design, blocks=most, stop="decided")
    planned = [
        dataclasses.replace(cell, block=block)
        for block in range(1, most + 1)
        for cell in study.cells
        if cell.block == 1
    ]
    study.cells = [_as_run(cell, until, left) for cell in planned]
    ran = {(cell.label, cell.block) for cell in study.cells if cell.outcome == "valid"}
    study.series = [one for one in study.series if (one.label, one.block) in ran]
    return study


def _as_run(cell: CellRecord, until: int, left: dict[str, int]) -> CellRecord:
    if cell.block > left.get(cell.arm, cell.block):
        return dataclasses.replace(cell, outcome="skipped", reason=f"decided after block {left[cell.arm]}")
    return dataclasses.replace(cell, outcome="valid" if cell.block <= until else "pending")


def look(study: Study) -> tuple[int, dict[str, str], tuple[str, ...]]:
    """What the rule says now."""
    found = decided_look(study.series, study.cells, study.design, vm="sql16")
    return found.blocks, dict(found.leave), found.stay


def arm(study: Study, name: str) -> ArmResult:
    """One arm's result."""
    return next(item for item in analysed(study).arms if item.arm == name)


GOLDEN = {
    (12, 4, "2x8"): (1.00456771, 0.002296295, 3.642689, 0.99619986, 1.01300585, 0.99697309, 1.01222019),
    (12, 4, "4x4"): (1.01792316, 0.002296295, 3.642689, 1.00944406, 1.02647348, 1.01022757, 1.02567737),
    (12, 4, "8x2"): (1.02253597, 0.002296295, 3.642689, 1.01401844, 1.03112503, 1.01480550, 1.03032532),
    (12, 4, "16x1"): (1.03652549, 0.002296295, 3.642689, 1.02789143, 1.04523206, 1.02868926, 1.04442140),
    (12, 5, "2x8"): (1.00383914, 0.001967726, 3.679201, 0.99659793, 1.01113296, 0.99726484, 1.01045677),
    (12, 6, "2x8"): (1.00478895, 0.001816475, 3.548798, 0.99833261, 1.01128705, 0.99893175, 1.01068050),
    (24, 4, "16x1"): (1.03652549, 0.002296295, 4.152667, 1.02668842, 1.04645681, 1.02749191, 1.04563848),
    (24, 5, "2x8"): (1.00383914, 0.001967726, 4.186097, 0.99560438, 1.01214200, 0.99626644, 1.01146939),
    (24, 6, "2x8"): (1.00478895, 0.001816475, 4.035483, 0.99745042, 1.01218147, 0.99803696, 1.01158662),
}
"""By largest number of blocks, block and arm: ratio, SE, constant, both repeated intervals."""


@pytest.mark.parametrize(("most", "block", "name"), GOLDEN)
def test_each_look_is_the_independent_ones(most: int, block: int, name: str) -> None:
    """Cells of arms that left stay in the fit, and the interval is that of the arm's last look."""
    left = dict.fromkeys(LEFT, 4) if block > 4 else None
    contrast = arm(decided(study_of(G1_MS, columns_of()), most, until=block, left=left), name).contrast
    inference = contrast.inference

    assert inference is not None
    found = (
        contrast.ratio,
        inference.se,
        inference.constant,
        *(inference.interval.low, inference.interval.high),
        *(inference.equivalence.low, inference.equivalence.high),
    )
    assert found == pytest.approx(GOLDEN[most, block, name], rel=2e-6)
    assert (inference.adjusted_p, inference.unadjusted) == (None, None)


@pytest.mark.parametrize("most", [12, 24])
def test_arms_leave_after_the_block_that_decides_them(most: int) -> None:
    """Three are slower after block 4; the fourth stays."""
    study = decided(study_of(G1_MS, columns_of()), most, until=4)

    assert look(study) == (4, dict.fromkeys(LEFT, "slower"), ("2x8",))


def test_an_unfinished_block_is_not_looked_at() -> None:
    """Its cells are kept; the rule and the verdicts are those of the last finished block."""
    study = decided(study_of(G1_MS, columns_of()), 12, until=5)
    whole = arm(decided(study_of(G1_MS, columns_of()), 12, until=4), "2x8").verdict
    study.drop(lambda cell: (cell.label, cell.block) == ("16x1", 5), "pending")

    assert look(study)[0] == 4
    assert arm(study, "2x8").verdict == whole


def test_a_verdict_never_changes_after_its_arm_has_left() -> None:
    """Whatever later blocks show of the others."""
    before = decided(study_of(G1_MS, columns_of()), 12, until=4)
    after = decided(study_of(G1_MS, columns_of()), 12, until=6, left=dict.fromkeys(LEFT, 4))

    assert [arm(after, name).verdict for name in LEFT] == [arm(before, name).verdict for name in LEFT]
    assert arm(after, "4x4").verdict.look == 4
    assert analysed(after).missing == ()


def test_nothing_is_equivalent_before_six_blocks() -> None:
    """Even where the interval lies inside the band after four."""
    quiet = noisy_ms(6, 6, 0.0005)

    assert look(decided(study_of(quiet, columns_of()), 12, until=5))[1] == {}
    assert set(look(decided(study_of(quiet, columns_of()), 12, until=6))[1].values()) == {"equivalent"}


def test_before_the_first_look_there_is_neither_verdict_nor_interval() -> None:
    """Four blocks are needed, and the estimate says that it is provisional."""
    study = decided(study_of(G1_MS, columns_of()), 12, until=3)
    found = arm(study, "16x1")

    assert look(study)[1] == {}
    assert (found.verdict.label, found.verdict.interval, found.verdict.boots_needed) == (
        Label.TOO_FEW,
        None,
        4,
    )
    assert found.verdict.ratio is not None


def test_a_stopped_run_keeps_its_verdicts() -> None:
    """The repeated interval holds whenever the run ends; an open arm is undecided."""
    study = decided(study_of(G1_MS, columns_of()), 24, until=5, left=dict.fromkeys(LEFT, 4))

    assert {item.arm: item.verdict.label for item in analysed(study).arms} == {
        "2x8": Label.UNDECIDED,
        **dict.fromkeys(LEFT, Label.SLOWER),
    }
    assert analysed(study).withheld is None
    assert analysed(study).blocks_not_begun == 19


def test_equivalence_waits_for_the_positive_control() -> None:
    """An instrument that has not shown a known effect shows no equality; the arm stays until it has."""
    quiet = noisy_ms(6, 6, 0.0005)
    study = decided(study_of(quiet, columns_of()), 12, until=6)
    study.design = dataclasses.replace(study.design, positive_control=PositiveControl("16x1"))

    assert look(study)[1] == {"16x1": "equivalent"}
    assert arm(study, "2x8").verdict.withheld is Withheld.CONTROL_FAILED

    quiet[:, 5] *= 1.1
    study = decided(study_of(quiet, columns_of()), 12, until=6, left={"16x1": 4})
    study.design = dataclasses.replace(study.design, positive_control=PositiveControl("16x1"))
    assert set(look(study)[1].values()) == {"equivalent"}


def test_a_given_up_cell_costs_its_arm_one_pair() -> None:
    """The level is that of the arm's own pairs, so the arm without one has its first look a block later."""
    study = decided(study_of(G1_MS, columns_of()), 12, until=4)
    study.drop(lambda cell: (cell.label, cell.block) == ("16x1", 2))

    assert look(study) == (4, {"4x4": "slower", "8x2": "slower"}, ("2x8", "16x1"))


def test_arms_share_the_error_with_those_that_the_vm_has_alone() -> None:
    """An arm that the plan left out on this VM spends nothing: the report's look is the run's."""
    study = decided(study_of(G1_MS, columns_of()), 12, until=4)
    study.without("16x1")
    alone = dataclasses.replace(study, design=dataclasses.replace(study.design, columns=columns_of(LEFT_IN)))

    assert [arm(study, name).verdict for name in LEFT_IN] == [arm(alone, name).verdict for name in LEFT_IN]


def test_an_arm_that_the_gate_keeps_open_is_told_why() -> None:
    """Its own boots scatter far more, so it rests on its own pairs; the others have left."""
    ms = noisy_ms(6, 6, 0.001)
    ms[:, 5] = noisy_ms(6, 1, 0.02, seed=3)[:, 0]
    found = analysed(decided(study_of(ms, columns_of()), 12, until=6))

    (caution,) = (item for item in found.cautions if item.id == "held_by_gate")
    assert caution.what.startswith("Undecided on its own pairs: 16x1. ")
    assert [item.arm for item in found.arms if item.verdict.label is Label.UNDECIDED] == ["16x1"]


def test_a_single_arm_that_is_open_is_held_by_no_gate() -> None:
    """Without other arms no error is pooled, so the gate forbids nothing."""
    found = analysed(decided(study_of(noisy_ms(6, 2, 0.02), columns_of(["2x8"], a_a=False)), 12, until=6))

    (only,) = found.arms
    assert (only.verdict.label, only.contrast.rests_on_pairs) == (Label.UNDECIDED, True)
    assert {item.id for item in found.cautions}.isdisjoint({"held_by_gate"})


TIMES = [0.2, 0.4, 0.6, 0.8, 1.0]


def test_obrien_fleming_spending_gives_the_textbooks_constants() -> None:
    """4 - 4Φ(z/√t) with z for a quarter of the error."""
    z = stats.norm.isf(0.05 / 4)
    spent = [4 - 4 * float(stats.norm.cdf(z / math.sqrt(t))) for t in TIMES]

    assert boundaries(spent, TIMES) == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=1e-3)


@pytest.mark.parametrize(
    ("total", "most", "table"),
    [
        (
            0.05 / 4,
            12,
            {4: 0.00240563, 5: 0.00185996, 6: 0.00214408, 8: 0.00297608, 12: 0.00510482},
        ),
        (0.1 / 4, 24, {4: 0.00170103, 5: 0.00128852, 6: 0.00147922, 14: 0.00431962, 24: 0.00961822}),
        (0.05, 12, {4: 0.0096225, 5: 0.00815485, 6: 0.00959673, 12: 0.0242456}),
        (0.1 / 4, 8, {4: 0.00883883, 5: 0.00744495, 8: 0.012424}),
    ],
)
def test_levels_are_those_of_another_implementation(total: float, most: int, table: dict[int, float]) -> None:
    """Power family, exponent 1.5, looks from block 4."""
    found = levels(total, most)

    assert {block: found[block] for block in table} == pytest.approx(table, abs=1e-5, rel=1e-4)


@pytest.mark.parametrize("most", [1, 3])
def test_too_few_blocks_have_no_look(most: int) -> None:
    """A study that ends before the first look has no level."""
    assert dict(levels(0.05, most)) == {}
