"""The instrument's own measurement: the fast path is the product's analysis, and targets can be missed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.unit.analysis.data import columns_of
from tools.calibration.__main__ import every_case, section
from tools.calibration.decided import MOST_ONE_BY_ONE, run_one
from tools.calibration.error_rates import BAND, MARGIN, Rate, measure, outcome, rank_intervals, words
from tools.calibration.hard_cases import prediction_width
from tools.calibration.promised_power import stopping
from tools.calibration.targets import BLOCKS, SEED, STUDIES, Calibration, Case, calibrate, targets, targets_of
from tools.calibration.truths import STANDARD, TRUTHS, Studies, Truth, draw
from vnuma.analysis.analyse import compare_cells
from vnuma.analysis.cells import Cells, collect
from vnuma.analysis.checks import check_a_a, check_control
from vnuma.analysis.compare import Comparison
from vnuma.analysis.records import ELAPSED, AnalysisDesign, CellRecord, NotEvaluated, Series
from vnuma.analysis.simulate import WORDS, Simulated, run_decided
from vnuma.analysis.stopping import stop_on_precision
from vnuma.analysis.verdict import Label, Verdict, decide, rules_for, run_withheld

ROOT = Path(__file__).parents[3]
SIZE = 1000
NAMES = {Label.TOO_FEW: "too_few"}


def _columns(truth: Truth) -> AnalysisDesign:
    arms = [f"arm{n}" for n in range(1, truth.arms + 1)]
    columns = columns_of(arms, a_a=truth.references == 2)
    return AnalysisDesign(
        reference="1x16",
        columns=columns,
        sizes=(SIZE,),
        forms=("client",),
        vms=("sql16",),
        blocks=1,
        order="fixed" if truth.fixed_order else "randomised",
    )


def _through_the_product(studies: Studies, number: int, blocks: int) -> tuple[Cells, AnalysisDesign]:
    """One simulated study as the series that a store would hold."""
    design = dataclasses.replace(_columns(studies.truth), blocks=blocks)
    series, cells = [], []
    for b in range(blocks):
        for c, column in enumerate(design.columns):
            place = b * len(design.columns) + int(studies.places[number, b, c]) + 1
            cells.append(CellRecord(column.label, column.arm, b + 1, "sql16", "valid", "", place))
            times = tuple(np.exp(studies.times[number, b, c]) * 20_000)
            series.append(Series(column.label, column.arm, b + 1, "sql16", SIZE, "client", times))
    return collect(series, cells, design, vm="sql16", form="client", measure=ELAPSED), design


def _verdicts(comparison: Comparison, design: AnalysisDesign) -> Iterator[Verdict]:
    control = check_control(None, comparison.contrasts)
    rules = rules_for(MARGIN, run_withheld(design.order, check_a_a(comparison)), control)
    return (decide(contrast, rules, 0.05) for contrast in comparison.contrasts)


@pytest.mark.parametrize("blocks", [5, 6, 9])
@pytest.mark.parametrize("truth", TRUTHS, ids=[truth.name for truth in TRUTHS])
def test_the_fast_path_is_the_products_analysis(truth: Truth, blocks: int) -> None:
    """Estimates, all intervals, the A/A p, ranks and words of sampled studies are those of the product."""
    studies = draw(truth, blocks, 4, np.random.default_rng((5, blocks)))
    fast, ranks = outcome(studies), rank_intervals(studies)
    said = words(fast, fixed_order=truth.fixed_order)
    for number in range(4):
        cells, design = _through_the_product(studies, number, blocks)
        comparison = compare_cells(cells, design)
        a_a = check_a_a(comparison)
        if fast.a_a_p is None:
            assert isinstance(a_a, NotEvaluated)
        else:
            assert not isinstance(a_a, NotEvaluated)
            assert a_a.p == pytest.approx(fast.a_a_p[number], abs=1e-9)
        for arm, (contrast, verdict) in enumerate(
            zip(comparison.contrasts, _verdicts(comparison, design), strict=True)
        ):
            inference = contrast.inference
            assert inference is not None
            assert inference.unadjusted is not None
            at = (number, arm)
            assert contrast.log_ratio == pytest.approx(fast.estimate[at], abs=1e-9)
            assert contrast.prediction is not None
            assert math.log(contrast.prediction.high) == pytest.approx(
                fast.estimate[at] + prediction_width(fast)[at], abs=1e-9
            )
            assert inference.half_width == pytest.approx(fast.half_width_95[at], abs=1e-9)
            for interval, half_width in (
                (inference.equivalence, fast.half_width_90),
                (inference.unadjusted, fast.unadjusted),
            ):
                assert math.log(interval.high) == pytest.approx(fast.estimate[at] + half_width[at], abs=1e-9)
            if ranks is not None:
                assert contrast.rank is not None
                assert math.log(contrast.rank.low) == pytest.approx(ranks[0][at], abs=1e-9)
                assert math.log(contrast.rank.high) == pytest.approx(ranks[1][at], abs=1e-9)
            assert _word(verdict) == {name for name, mask in said.items() if mask[at]}


def _word(verdict: Verdict) -> set[str]:
    return {"withheld"} if verdict.withheld else {NAMES.get(verdict.label, str(verdict.label))}


def test_every_word_occurs_somewhere() -> None:
    """Effects of -3, 0.3, 1 and 3% give each word, exactly one an arm."""
    studies = draw(STANDARD, 8, 400, np.random.default_rng(3))
    result = outcome(studies)
    seen = set()
    for effect in (-0.03, 0.003, 0.01, 0.03):
        said = words(result, effect=effect)
        masks = np.array(list(said.values()))
        assert (masks.sum(axis=0) == 1).all()
        seen |= {name for name, mask in said.items() if mask.any()}
    assert seen == {"slower", "faster", "equivalent", "undecided", "withheld"}


def test_stopping_is_the_products_rule() -> None:
    """Studies stop at the block at which the product's own decision stops them."""
    target, studies = 0.008, 12
    y = draw(STANDARD, 24, studies, np.random.default_rng(9)).cells
    found = stopping(STANDARD, target, studies, np.random.default_rng(9))
    stopped = []
    for number in range(studies):
        for blocks in range(1, 25):
            if blocks < 2:
                continue
            widths = Simulated(y[number : number + 1, :blocks], 2).half_width_95[0]
            if stop_on_precision([float(w) for w in widths], blocks, 6, target, 24).stop:
                stopped.append(blocks)
                break
    assert found.mean_blocks == pytest.approx(np.mean(stopped))


def test_monte_carlo_errors_are_those_of_shares() -> None:
    """sqrt(p (1-p) / n) for one value a study; arms of one study are not counted as independent."""
    one = np.random.default_rng(1).random(400) < 0.3
    assert Rate.of(one).error == pytest.approx(math.sqrt(one.mean() * (1 - one.mean()) / 400))
    assert Rate.of(np.tile(one[:, None], 4)).error == pytest.approx(Rate.of(one).error)


def test_drift_follows_the_order_run() -> None:
    """In fixed order the last column always runs later than the first; in random order it does not."""
    fixed = next(truth for truth in TRUTHS if truth.fixed_order)
    random = next(truth for truth in TRUTHS if truth.name == "drift 3.6%, random order")
    late = [
        float(np.diff(draw(truth, 8, 500, np.random.default_rng(1)).cells[:, :, [0, -1]]).mean())
        for truth in (fixed, random)
    ]
    assert late[0] == pytest.approx(0.036 * 5 / 47, abs=0.0005)
    assert late[1] == pytest.approx(0.0, abs=0.0005)


@pytest.fixture(scope="module")
def small() -> Calibration:
    """A calibration of few studies."""
    return calibrate(30, seed=11, blocks=(6, 8), pilots=4)


def test_the_same_seed_gives_the_same_figures(small: Calibration) -> None:
    """Whole numbers of studies come out the same, so that the table can be reproduced."""
    again = measure(draw(STANDARD, 6, 30, np.random.default_rng((11, 1, 0, 6))))
    assert again == small.rates[0]


def test_each_target_can_be_missed(small: Calibration) -> None:
    """A rule twice as wrong as allowed, or twice as cautious, misses the targets that it should."""
    bad = Rate(0.30, 0.02)
    wrong = [
        dataclasses.replace(
            rates,
            family=bad if rates.truth.group != "fixed" else Rate(0.02, 0.007),
            arms=(bad, Rate(0.001, 0.001)),
            false_equivalent=bad,
            a_a_alarm=bad,
            rank_error=bad,
            withheld=Rate(0.5, 0.02),
        )
        for rates in small.rates
    ]
    promises = [dataclasses.replace(item, power=Rate(0.6, 0.02)) for item in small.promises]
    stopped = [dataclasses.replace(item, family=(bad,)) for item in small.stopping]
    found = dataclasses.replace(
        small,
        rates=tuple(wrong),
        promises=tuple(promises),
        pilots=Rate(0.5, 0.02),
        stopping=tuple(stopped),
    )
    missed = [target.name for target in targets(found) if not target.met]
    cautious = dataclasses.replace(
        small, rates=tuple(dataclasses.replace(rates, family=Rate(0.0, 0.0)) for rates in small.rates)
    )
    missed += [target.name for target in targets(cautious) if not target.met]
    assert {target.name for target in targets(small)} == set(missed)


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    """The hard cases with few studies."""
    return every_case(4, seed=11, pilots=4)


@pytest.mark.long
def test_each_target_of_hard_cases_can_be_missed(cases: tuple[Case, ...]) -> None:
    """A rate far from its bound misses every target."""
    wrong = [dataclasses.replace(item, rate=Rate(0.30 if item.at_most else 0.05, 0.02)) for item in cases]
    assert not any(target.met for target in targets_of(wrong))


def test_the_published_table_is_the_programs() -> None:
    """calibration.md has the command's output: its parameters, and one recomputed line."""
    page = (ROOT / "docs/reference/calibration.md").read_text(encoding="utf-8")
    generators = [np.random.default_rng((SEED, 1, 0, blocks)) for blocks in BLOCKS]
    rates = [
        measure(draw(STANDARD, blocks, STUDIES, generator))
        for blocks, generator in zip(BLOCKS, generators, strict=True)
    ]
    family = "/".join(f"{item.family.share * 100:.1f}" for item in rates)
    assert f"{STUDIES:,} simulated studies" in page
    assert f"seed {SEED}" in page
    assert f"| normal | {family} |" in page
    missed = [line.split(" | ")[0].strip("| ") for line in page.splitlines() if line.endswith("| NO |")]
    explained = page.partition("Not met with this seed")[2].split("\n\n")[0]
    assert [name for name in missed if f"*{name}*" not in explained] == []


@pytest.mark.long
def test_the_page_names_every_truth_and_target(small: Calibration, cases: tuple[Case, ...]) -> None:
    """Nothing that was simulated is left out of the document."""
    page = section(small, cases)
    assert all(page.count(f"| {truth.name} |") >= 5 for truth in TRUTHS)
    assert all(f"| {target.name} |" in page for target in (*targets(small), *targets_of(cases)))


def test_the_fast_rule_of_leaving_arms_is_the_products() -> None:
    """Study by study: the same verdicts, after the same blocks."""
    generator = np.random.default_rng(5)
    y = draw(STANDARD, MOST_ONE_BY_ONE, 12, generator).cells
    y[6:, :, -1] *= 3.0
    y[:, :, 2] += 0.02
    fast = run_decided(y, STANDARD.references, BAND)

    for number, cells in enumerate(y):
        found, _ = run_one(cells)
        words = [str(found.get(str(arm + 2), "undecided")) for arm in range(STANDARD.arms)]
        assert words == [WORDS[word] for word in fast.word[number]]
