"""The whole analysis on runs as they come: complete, interrupted, small, empty; and what it recommends."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.analysis.data import (
    ARMS,
    EFFECTS,
    Study,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    usual_study,
    words,
)
from vnuma.analysis.analyse import analyse, precision_look
from vnuma.analysis.checks import AaCheck, ControlCheck, Drift, Slope
from vnuma.analysis.conclusions import recommend, undecided
from vnuma.analysis.outliers import Bimodality
from vnuma.analysis.records import NotEvaluated, PositiveControl
from vnuma.analysis.result import ArmResult, range_coverage
from vnuma.analysis.verdict import Label, Withheld

USUAL = dict.fromkeys(ARMS, Label.SLOWER) | {"2x8": Label.EQUIVALENT}
TOO_FEW = dict.fromkeys(ARMS, Label.TOO_FEW)
OPEN = (Label.UNDECIDED, Label.TOO_FEW)


def test_a_complete_run() -> None:
    """Every part of a complete run is evaluated, and the words follow the truth it was made with."""
    found = analysed(usual_study())
    assert words(found) == USUAL
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


def test_how_a_gap_changes_with_size_is_found() -> None:
    """The size with the largest gap, and 1 point more per doubling of rows."""
    doublings = {500: 0, 2000: 4}  # of rows joined
    study = usual_study(sd=0.001).scale(
        lambda s: {"2x8": 1.03 if s.size == 2000 else 1.0, "16x1": 1.01 ** doublings[s.size]}.get(
            s.label, 1.0
        )
    )
    found = analysed(study)
    size, ratio = found.largest_gap("2x8") or (0, 0.0)
    assert size == 2000
    assert ratio == pytest.approx(1.03, abs=0.005)
    assert isinstance(found.growth, tuple)
    last = found.growth[-1]
    assert (last.arm, last.trend) == ("16x1", "falls behind")
    assert last.points == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("order", "blocks", "withheld"),
    [("randomised", 6, Withheld.NOT_ENDED), ("fixed", 4, Withheld.FIXED_ORDER)],
    ids=["a run that goes on", "few boots in a fixed order"],
)
def test_a_gap_has_no_trend_while_verdicts_are_withheld(order: str, blocks: int, withheld: Withheld) -> None:
    """Its slope and interval are shown, and the reason is the verdicts'."""
    study = usual_study(sd=0.001, order=order).scale(
        lambda s: 1.04 if (s.label, s.size) == ("16x1", 2000) else 1.0
    )
    found = analysed(study.drop(lambda cell: cell.block > blocks, "pending"))

    assert isinstance(found.growth, tuple)
    last = found.growth[-1]
    assert (last.low or 0.0) > 0
    assert (last.trend, last.withheld) == ("undecided", withheld)


@pytest.mark.parametrize(
    ("small", "large", "size", "gap"), [(0.95, 1.02, 500, 0.95), (1.02, 1.04, 2000, 1.04)]
)
def test_the_largest_gap_may_be_an_arm_that_is_faster(
    small: float, large: float, size: int, gap: float
) -> None:
    """5% faster at one size outweighs 2% slower at another."""
    study = usual_study(sd=0.0005).scale(
        lambda s: (small if s.size == 500 else large) if s.label == "2x8" else 1.0
    )

    found = analysed(study).largest_gap("2x8")

    assert found is not None
    assert found[0] == size
    assert found[1] == pytest.approx(gap, abs=0.01)


def _loud() -> Study:
    ms = noisy_ms(8, 6, 0.002, EFFECTS)
    ms[:, 1] *= 1.02
    return study_of(ms, columns_of())


@pytest.mark.parametrize(
    ("study", "labels", "withheld", "cautions"),
    [
        (_loud, dict.fromkeys(ARMS, Label.UNDECIDED), Withheld.A_A_ALARM, {"aa_alarm"}),
        (lambda: study_of(noisy_ms(8, 5, 0.002, EFFECTS[1:]), columns_of(a_a=False)), USUAL, None, {"no_aa"}),
        (lambda: study_of(noisy_ms(8, 2, 0.002), columns_of(())), {}, None, set()),
        *((lambda n=n: usual_study(n), TOO_FEW, None, {"too_few_boots"}) for n in (1, 2, 3, 5)),
        (
            lambda: usual_study().drop(lambda c: c.label == "8x2"),
            USUAL | {"8x2": Label.TOO_FEW},
            None,
            {"arm_missing"},
        ),
        (lambda: usual_study().drop(lambda c: c.arm == "1x16"), TOO_FEW, None, {"reference_missing"}),
        (
            lambda: usual_study().drop(lambda c: True, "invalid", "topology_mismatch"),
            TOO_FEW,
            None,
            {"no_data"},
        ),
        # Times that differ by 10 ms or not at all decide nothing finer, and divide nothing by zero.
        (
            lambda: study_of(
                np.tile([100.0, 100, 100, 110, 160, 40], (8, 1)), columns_of(), iterations=(1.0,) * 3
            ),
            {**dict.fromkeys(ARMS[:2], Label.UNDECIDED), "8x2": Label.SLOWER, "16x1": Label.FASTER},
            None,
            {"coarse_clock"},
        ),
    ],
    ids=[
        *("A/A alarm", "no A/A", "A/A alone", "1 block", "2 blocks", "3 blocks", "5 blocks"),
        *("an arm never ran", "the reference never ran", "all invalid", "equal times"),
    ],
)
def test_a_run_that_lacks_something_says_so_and_makes_nothing_up(
    study: Callable[[], Study], labels: dict[str, Label], withheld: Withheld | None, cautions: set[str]
) -> None:
    """Verdicts where there are the boots for one, else the figures alone, and a warning."""
    found = analysed(study())
    few = [item.verdict for item in found.arms if item.verdict.label is Label.TOO_FEW]
    assert words(found) == labels
    assert found.withheld is withheld
    assert cautions <= caution_ids(found)
    assert all(one.provisional or one.ratio is None for one in few)
    assert bool(found.recommended) is (labels == USUAL or Label.FASTER in labels.values())


def test_what_one_block_or_no_reference_can_show() -> None:
    """Medians and ratios without an interval; medians alone; why the rest is not evaluated."""
    one = analysed(usual_study(1))
    assert all(item.verdict.ratio is not None and item.verdict.interval is None for item in one.arms)
    assert one.table[0].cells[2].median is not None
    assert one.noise.cell_sd is None
    assert isinstance(one.drift, Drift)
    for check in (one.a_a, one.detectable_effect, one.drift.between_blocks):
        assert isinstance(check, NotEvaluated)

    none = analysed(usual_study().drop(lambda c: c.arm == "1x16"))
    assert {item.verdict.ratio for item in none.arms} == {None}
    assert [cell.median is None for cell in none.table[0].cells] == [True, False, False, False, False]
    assert isinstance(none.drift, NotEvaluated)


def test_blocks_that_give_no_verdict_are_not_said_to_detect_anything() -> None:
    """Five blocks have a spread and intervals, and no word; six have both."""
    five, six = (analysed(usual_study(blocks)) for blocks in (5, 6))
    assert all(item.verdict.interval is not None for item in five.arms)
    assert isinstance(five.detectable_effect, NotEvaluated)
    assert isinstance(six.detectable_effect, float)


def test_an_interrupted_run_uses_what_there_is() -> None:
    """A run that stopped inside block 7 keeps block 7's cells and counts boots per arm."""
    later = lambda c: c.block == 8 or (c.block == 7 and c.label in ("8x2", "16x1"))  # noqa: E731
    found = analysed(usual_study().drop(later, outcome="pending", reason=""))
    assert (found.blocks, found.complete_blocks, found.blocks_not_begun) == (7, 6, 1)
    assert {item.arm: item.verdict.boots for item in found.arms} == {"2x8": 7, "4x4": 7, "8x2": 6, "16x1": 6}
    assert set(words(found).values()).isdisjoint({Label.TOO_FEW})
    assert {"cells_missing", "blocks_not_begun"} <= caution_ids(found)


def test_an_arm_that_never_ran_does_not_widen_the_others_intervals() -> None:
    """They are those of the study without it."""
    found = analysed(usual_study().drop(lambda c: c.label == "8x2"))
    ms = np.delete(noisy_ms(8, 6, 0.003, EFFECTS), 4, axis=1)
    three = analysed(study_of(ms, columns_of(("2x8", "4x4", "16x1")), sizes=(500, 2000)))
    assert [i.contrast.inference for i in found.arms if i.arm != "8x2"] == [
        i.contrast.inference for i in three.arms
    ]


@pytest.mark.parametrize("kept", [1, 2])
def test_few_a_a_cells_take_no_verdict_away(kept: int) -> None:
    """An A/A column that lost most of its cells leaves the verdicts that the others allow."""
    some = usual_study().drop(lambda c: c.label == "1x16 (A/A)" and c.block > kept)
    none = usual_study().drop(lambda c: c.label == "1x16 (A/A)")
    assert words(analysed(some)) == words(analysed(none))


def test_a_failed_control_withholds_equivalence() -> None:
    """A declared control that is not found slower withholds "equivalent" and says so."""
    study = study_of(noisy_ms(8, 6, 0.002), columns_of())
    found = analysed(study, positive_control=PositiveControl("16x1"))
    assert found.positive_control == ControlCheck("16x1", "slower", passed=False)
    assert {item.arm: item.verdict.withheld for item in found.arms} == {
        **dict.fromkeys(ARMS[:3], Withheld.CONTROL_FAILED),
        "16x1": None,
    }
    assert {"control_failed"} <= caution_ids(found)
    assert found.recommended == ()


def test_forms_metrics_and_vms_stay_apart() -> None:
    """One analysis per VM, form and recorded metric; only form one with elapsed time is primary."""
    study = usual_study()
    server = [s._replace(form="server", cpu_ms=s.elapsed_ms) for s in study.series]
    other = [s._replace(vm="sql17") for s in study.series]
    cells = study.cells + [dataclasses.replace(c, vm="sql17") for c in study.cells]
    design = dataclasses.replace(study.design, forms=("client", "server"), vms=("sql16", "sql17"))
    result = analyse(study.series + server + other, cells, design)
    assert [(a.vm, a.form, a.metric, a.primary) for a in result.analyses] == [
        ("sql16", "client", "elapsed_ms", True),
        ("sql16", "server", "elapsed_ms", False),
        ("sql16", "server", "cpu_ms", False),
        ("sql17", "client", "elapsed_ms", True),
        ("sql17", "server", "elapsed_ms", False),
    ]
    assert words(result.primary[0]) == words(result.primary[1])
    unmeasured = result.analysis("sql17", "server", "elapsed_ms")
    assert unmeasured is not None
    assert {gap.outcome for gap in unmeasured.missing} == {"not measured"}
    assert result.analysis("sql17", "server", "cpu_ms") is None


def test_a_coarse_clock_shows_no_equivalence() -> None:
    """Steps of 1.2% cannot show equality within 1%; the same times in fine steps do."""
    fine = study_of(noisy_ms(12, 6, 0.003, base=400), columns_of())
    coarse = dataclasses.replace(
        fine,
        series=[
            s._replace(elapsed_ms=tuple(round(ms / 5) * 5.0 for ms in s.elapsed_ms)) for s in fine.series
        ],
    )
    assert set(words(analysed(fine)).values()) == {Label.EQUIVALENT}
    assert set(words(analysed(coarse)).values()).isdisjoint({Label.EQUIVALENT})


@pytest.mark.parametrize(("blocks", "stop", "reason"), [(5, False, "too early"), (6, True, "precise")])
def test_precision_look_on_a_running_study(blocks: int, stop: bool, reason: str) -> None:
    """A quiet host stops at the first look, block 6, and not before, with a block half run."""
    study = usual_study(sd=0.001)
    study.drop(lambda c: c.block > blocks + 1 or (c.block > blocks and c.label != "2x8"), outcome="pending")
    decision = precision_look(study.series, study.cells, study.design, vm="sql16", target=0.01)
    assert (decision.stop, decision.reason, decision.blocks) == (stop, reason, blocks)


@pytest.mark.parametrize(
    ("last", "outcome", "reason", "withheld"),
    [
        (lambda cell: cell.block > 8, "pending", "", Withheld.NOT_ENDED),
        (lambda cell: cell.block > 8, "skipped", "precise enough", None),
        (lambda cell: (cell.block, cell.label) == (10, "16x1"), "claimed", "", Withheld.NOT_ENDED),
        (lambda cell: (cell.block, cell.label) == (10, "16x1"), "failed", "", None),
    ],
    ids=["stopped by a person", "ended by its rule", "the last cell is to run", "the last cell was given up"],
)
def test_words_wait_for_the_declared_end(
    last: Callable[[object], bool], outcome: str, reason: str, withheld: Withheld | None
) -> None:
    """Looking before it, and be it one cell, is one more look; what a rule or a failure ended has ended."""
    found = analysed(study_of(noisy_ms(10, 6, 0.001), columns_of()).drop(last, outcome, reason))

    assert found.withheld is withheld
    assert {arm.verdict.withheld for arm in found.arms} == {withheld}
    assert all(arm.verdict.interval for arm in found.arms)
    assert bool(found.recommended) is (withheld is None)


@pytest.mark.parametrize(
    ("effects", "recommended"),
    [
        ((0, 0, -0.05, -0.03, 0, 0.02), ("2x8",)),
        ((0, 0, 0.03, -0.03, 0, -0.05), ("16x1",)),
        ((0, 0, 0.03, 0, 0, 0.05), ("1x16", "4x4", "8x2")),
        ((0, 0, 0.03, 0.03, 0.03, 0.05), ("1x16",)),
    ],
)
def test_recommended_arms(effects: tuple[float, ...], recommended: tuple[str, ...]) -> None:
    """The fastest arm alone if one is faster, else the reference with what is equivalent to it."""
    assert analysed(study_of(noisy_ms(8, 6, 0.001, effects), columns_of())).recommended == recommended


@pytest.fixture(scope="module")
def template() -> ArmResult:
    """An arm of an analysis, to be given other words."""
    return analysed(usual_study()).arms[0]


def arms_with(template: ArmResult, *labels: Label, left_out: int = -1) -> list[ArmResult]:
    """Arms a, b, c, ... with these words."""
    return [
        dataclasses.replace(
            template,
            arm="abcdefgh"[n],
            verdict=dataclasses.replace(template.verdict, label=word, withheld=None, left_out=n == left_out),
        )
        for n, word in enumerate(labels)
    ]


@given(labels=st.lists(st.sampled_from(list(Label)), min_size=1, max_size=8))
def test_the_reference_is_no_advice_while_an_arm_may_be_faster(
    template: ArmResult, labels: list[Label]
) -> None:
    """Advice needs a faster arm, or that every arm is decided."""
    arms = arms_with(template, *labels)

    advised = recommend("ref", arms)

    if Label.FASTER in labels:
        assert len(advised) == 1
        assert advised[0] != "ref"
    elif any(word in OPEN for word in labels):
        assert advised == ()
        assert len(undecided(arms)) == sum(word in OPEN for word in labels)
    else:
        assert advised[0] == "ref"
        assert set(advised[1:]) == {arm.arm for arm in arms if arm.verdict.label is Label.EQUIVALENT}


def test_an_arm_that_the_plan_left_out_hides_no_advice(template: ArmResult) -> None:
    """It was never asked about; of two arms that are equally fast, both are advised all the same."""
    ms = noisy_ms(8, 6, 0.002)
    ms[:, 2:4] *= 0.97

    assert recommend("ref", arms_with(template, Label.SLOWER, Label.TOO_FEW, left_out=1)) == ("ref",)
    assert analysed(study_of(ms, columns_of()).without("16x1")).recommended == ("2x8", "4x4")


@pytest.mark.parametrize(
    ("n", "percent"), [(1, 0), (3, 75), (4, 87.5), (5, 93.75), (6, 96.875), (8, 99.21875)]
)
def test_coverage_of_the_range(n: int, percent: float) -> None:
    """The range of n boots covers the median boot with probability 1 - 2^(1-n)."""
    assert 100 * range_coverage(n) == percent


def test_figures_of_a_cell() -> None:
    """Median, range, MAD and ratio of medians are those of the boot medians."""
    ms = np.array([[100.0, 104, 110], [101, 102, 111], [99, 103, 150], [100, 101, 112]])
    reference, arm = analysed(study_of(ms, columns_of(("2x8",)), iterations=(1.0,) * 3)).table[0].cells
    assert (reference.boots, reference.median, reference.low, reference.high) == (8, 101.0, 99.0, 104.0)
    assert (arm.boots, arm.median, arm.mad, arm.coverage) == (4, 111.5, 1.0, 0.875)
    assert arm.ratio is not None
    assert arm.difference == pytest.approx((arm.ratio - 1) * 101)
