"""The typed warnings of an analysis: when each is given, and that each has advice."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.unit.analysis.data import (
    EFFECTS,
    analysed,
    caution_ids,
    columns_of,
    noisy_ms,
    study_of,
    usual_study,
)
from vnuma.analysis.analyse import analyse
from vnuma.analysis.checks import AaCheck
from vnuma.analysis.records import CellRecord, NotEvaluated, PositiveControl
from vnuma.analysis.verdict import Label
from vnuma.analysis.wording import sentence
from vnuma.domain.study.study import Covariate
from vnuma.domain.workloads.metric import Replicate


def test_a_single_timed_iteration_is_warned_of() -> None:
    """Boots with one iteration are analysed, and the report says what that costs."""
    found = analysed(usual_study(iterations=(1.0,)))
    assert "few_iterations" in caution_ids(found)
    assert isinstance(found.first_iteration, NotEvaluated)


@pytest.mark.parametrize(("iterations", "few"), [((1.0, 1.0), True), ((1.0, 1.0, 1.0), False)])
def test_fewer_than_three_iterations_are_warned_of(iterations: tuple[float, ...], few: bool) -> None:
    """Of two the median is a mean, which one slow iteration moves."""
    assert ("few_iterations" in caution_ids(analysed(usual_study(iterations=iterations)))) is few


def test_what_a_workload_says_against_its_own_result_is_among_the_warnings() -> None:
    """A search over sizes, whose largest difference is a maximum; nothing of the kind without it."""
    said = ("A maximum over a search.", "Repeat with one size.")
    study = usual_study()
    searched = dataclasses.replace(study.design, caution=said)

    (found,) = analyse(study.samples, study.cells, searched).primary
    assert [(one.what, one.advice) for one in found.cautions if one.id == "workload"] == [said]
    assert "workload" not in caution_ids(analysed(study))


def test_a_note_when_the_reference_nearly_differs_from_itself() -> None:
    """An A/A p between 0.01 and 0.05 is a note: the words stand."""
    ms = noisy_ms(8, 6, 0.002, EFFECTS)
    ms[:, 1] *= ms[:, 0].mean() / ms[:, 1].mean() * 1.0025
    found = analysed(study_of(ms, columns_of()))
    assert isinstance(found.a_a, AaCheck)
    assert found.a_a.state == "note"
    assert found.withheld is None
    assert "aa_note" in caution_ids(found)


def test_drift_is_reported() -> None:
    """A run that slows down from block to block, and from cell to cell, raises both drift warnings."""
    study = usual_study(sd=0.0005)
    place = {(c.label, c.block): c.position or 0 for c in study.cells}
    study.samples = [
        s._replace(elapsed_ms=(s.elapsed_ms or 0) * 1.002 ** place[s.label, s.block]) for s in study.samples
    ]
    found = analysed(study)
    assert {"drift_blocks", "drift_within"} <= caution_ids(found)
    assert found.withheld is None


def test_rank_dissent_is_reported() -> None:
    """Slower by the fit, not by ranks, because one boot of six differs in direction: both are shown."""
    ms = noisy_ms(6, 6, 0.004, seed=4)
    ms[:, 5] = ms[:, :2].mean(axis=1) * np.exp([0.02, 0.021, 0.019, 0.02, 0.018, -0.0005])
    found = analysed(study_of(ms, columns_of()))
    arm = found.arms[-1]
    assert (arm.verdict.label, arm.verdict.rank_supports) == (Label.SLOWER, False)
    assert "sensitivity" in caution_ids(found)


@pytest.mark.parametrize(
    ("order", "covariate", "fair", "place"),
    [
        ("randomised", "none", True, True),
        ("randomised", "place", False, False),
        ("fixed", "none", False, False),
    ],
)
def test_advice_on_drift_fits_the_design(order: str, covariate: Covariate, fair: bool, place: bool) -> None:
    """Only a random order is called fair, and only a study without the place gets that hint."""
    ms = noisy_ms(8, 6, 0.001) * np.exp(0.05 * np.arange(8))[:, None]
    study = study_of(ms, columns_of(), order=order)
    study.design = dataclasses.replace(study.design, covariate=covariate)
    advice = next(item.advice for item in analysed(study).cautions if item.id == "drift_blocks")

    assert ("Random order keeps" in advice, "covariate: place" in advice) == (fair, place)


def test_every_caution_has_advice() -> None:
    """Each warning says what to do next."""
    study = usual_study(blocks=3, order="fixed", iterations=(1.0,))
    study.drop(lambda c: c.label == "8x2" or (c.label == "1x16 (A/A)" and c.block < 3))
    study.cells.append(CellRecord("8x2", "8x2", 4, "sql16", "pending"))
    cautions = analysed(study).cautions
    assert len(cautions) > 4
    assert all(caution.what and caution.advice for caution in cautions)
    assert len({caution.id for caution in cautions}) == len(cautions)


def test_an_arm_that_the_plan_left_out_says_so_and_nothing_of_it_is_missing() -> None:
    """It was never to be measured: no cell to repeat, and every block without it is complete."""
    study = usual_study(blocks=6)
    study.samples = [sample for sample in study.samples if sample.arm != "8x2"]
    study.cells = [cell for cell in study.cells if cell.arm != "8x2"]

    (analysis,) = (
        item for item in analyse(study.samples, study.cells, study.design).analyses if item.primary
    )

    verdicts = {arm.arm: arm.verdict for arm in analysis.arms}
    assert sentence(verdicts["8x2"]) == "not measured: excluded by the plan"
    assert [arm for arm, verdict in verdicts.items() if verdict.left_out] == ["8x2"]
    assert (analysis.missing, analysis.complete_blocks) == ((), 6)
    assert {item.id for item in analysis.cautions} & {
        "arm_missing",
        "too_few_boots",
        "cells_missing",
    } == set()


def test_what_is_repeated_has_one_word() -> None:
    """A machine's passes are not called boots, in verdicts as in warnings."""
    study = usual_study(blocks=4)
    study.design = dataclasses.replace(study.design, replicate="pass")

    analysis = analysed(study)

    assert sentence(analysis.arms[0].verdict).startswith("too few passes (4 of 6)")
    assert "Fewer than 6 passes" in " ".join(item.what for item in analysis.cautions)


@pytest.mark.parametrize(("replicate", "few"), [("boot", "6 boots"), ("pass", "6 passes")])
def test_a_control_with_too_few_replicates_names_what_is_repeated(replicate: Replicate, few: str) -> None:
    """A machine that is not booted has passes."""
    study = usual_study(blocks=5)
    study.design = dataclasses.replace(
        study.design, replicate=replicate, positive_control=PositiveControl("16x1")
    )

    assert analysed(study).positive_control == NotEvaluated(f"arm 16x1 has fewer than {few}")


@pytest.mark.parametrize("column", [1, 3])
def test_a_column_that_varies_far_more_is_named(column: int) -> None:
    """An arm's or the reference's: it is why no interval uses the pooled error."""
    ms = noisy_ms(8, 6, 0.001)
    ms[:, column] = noisy_ms(8, 1, 0.02, seed=3)[:, 0]
    found = analysed(study_of(ms, columns_of()))

    (caution,) = (item for item in found.cautions if item.id == "variance_gate")
    assert caution.what.split(" varied ")[0] == columns_of()[column].label
    assert all(arm.contrast.rests_on_pairs for arm in found.arms)


def test_columns_that_vary_alike_are_no_caution() -> None:
    """In every second study one of six columns lies beyond the 10% point of F, so this is not a warning."""
    warned = sum(
        item.id == "variance_gate"
        for seed in range(60)
        for item in analysed(study_of(noisy_ms(8, 6, 0.005, seed=seed), columns_of())).cautions
    )

    assert warned <= 8
