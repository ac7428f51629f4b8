"""The place in the block: drift leaves the error where it was declared, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.analysis.data import LABELS, analysed, columns_of, study_of, verdict_of, words
from vnuma.analysis.cells import Grid
from vnuma.analysis.compare import compare
from vnuma.analysis.fit import terms
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.result import Analysis
from vnuma.analysis.verdict import Label
from vnuma.domain.study.order import declaration, deviations, hash_of
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError

STUDY = """\
name: s
vms: [v]
vcpus: 16
reference: 1x16
arms: [1x16, 2x8]
design: {DESIGN}
workload: {sizes: [500]}
"""


def drifted(**declared: str) -> Analysis:
    """Eight blocks, 3% of drift within each, 4x4 slower by 0.8%."""
    rng = np.random.default_rng(5)
    study = study_of(np.exp(rng.normal(0, 0.003, (8, 6))) * 1000, columns_of())
    place = {(cell.label, cell.block): (cell.position or 0) % 6 for cell in study.cells}
    study.scale(lambda s: math.exp(0.03 * place[s.label, s.block] / 5 + 0.008 * (s.label == "4x4")))
    return analysed(study, **declared)


def test_the_covariate_takes_the_drift_out_where_it_is_declared() -> None:
    """The interval is less than half as wide, and 4x4 is found; without the declaration it is not."""
    plain, declared = drifted(), drifted(covariate="place")
    wide, narrow = (verdict_of(found, "4x4").half_width for found in (plain, declared))

    assert wide
    assert narrow
    assert narrow < wide / 2
    assert [words(found)["4x4"] for found in (plain, declared)] == [Label.UNDECIDED, Label.SLOWER]
    assert declared.df == plain.df - 1


def test_the_drift_alarm_still_sees_what_the_covariate_took() -> None:
    """It looks at the values as they were measured."""
    found = drifted(covariate="place").drift

    assert not isinstance(found, NotEvaluated)
    assert not isinstance(found.within_blocks, NotEvaluated)
    assert found.within_blocks.alarm


@pytest.mark.parametrize("order", ["latin_square", "williams"])
def test_squares_have_the_place_as_a_factor(order: str) -> None:
    """Five degrees of freedom for six places."""
    assert drifted(order=order).df == drifted().df - 5


@pytest.mark.parametrize("order", ["latin_square", "williams"])
def test_squares_without_a_boot_have_no_verdict(order: str) -> None:
    """As any run that was stopped before its first valid boot."""
    study = study_of(np.full((8, 6), 1000.0), columns_of())
    study.series.clear()

    assert set(words(analysed(study, order=order)).values()) == {Label.TOO_FEW}


def test_a_constant_added_to_each_place_changes_nothing() -> None:
    """With the factor, whatever the places add: estimates and intervals stay to the last digits."""
    rng = np.random.default_rng(2)
    at = np.array([rng.permutation(6) for _ in range(8)], dtype=np.float64)
    y = rng.normal(0, 0.01, (8, 6))
    arms = {label: label for label in LABELS[2:]}
    one, other = (
        compare(Grid(LABELS, tuple(range(8)), values, terms(at, "factor", 6)), LABELS[:2], arms)
        for values in (y, y + rng.normal(0, 1, 6)[at.astype(int)])
    )
    for a, b in zip(one.contrasts, other.contrasts, strict=True):
        assert a.inference is not None
        assert b.inference is not None
        assert a.log_ratio == pytest.approx(b.log_ratio, rel=1e-6)
        assert a.inference.half_width == pytest.approx(b.inference.half_width, rel=1e-6)


def test_the_declared_plan_holds_the_covariate() -> None:
    """A plan without it differs once the study has it; plans of studies without one stay as they were."""
    texts = [STUDY.replace("DESIGN", text) for text in ("blocks: 8", "covariate: place")]
    plain, placed = (parse_study(text, "s.yml") for text in texts)
    before, now = declaration(plain, "0", []), declaration(placed, "0", [])

    assert before.keys().isdisjoint({"covariate"})
    assert deviations(before, hash_of(before), now) == ("the covariate differs",)


@pytest.mark.parametrize("order", ["fixed", "latin_square"])
def test_the_covariate_is_refused_where_it_says_nothing(order: str) -> None:
    """In fixed order place and arm are one; squares have it already."""
    with pytest.raises(InputError):
        parse_study(STUDY.replace("DESIGN", f"covariate: place, order: {order}, blocks: 6"), "s.yml")
