"""Planning: variances, power, blocks, precision stopping, likely boots, and iterations against boots."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from tests.unit.analysis.data import G1_MS, LABELS, as_grid, columns_of, compare_ms
from vnuma.analysis.cells import Boot, Grid
from vnuma.analysis.compare import compare
from vnuma.analysis.fit import fit
from vnuma.analysis.planning import (
    Allocation,
    Costs,
    Plans,
    Spread,
    allocate,
    assumed_spreads,
    blocks_for,
    detectable_by_pairs,
    detectable_effect,
    effects_in_turn,
    ending,
    equivalent_by_pairs,
    iteration_seconds,
    layout_of,
    leaving,
    needed,
    outlook,
    power,
    power_equivalent,
    ratio_for_equivalence,
    ratio_needed,
    typical_spread,
    upper_spread,
)
from vnuma.analysis.records import AnalysisDesign, Column, Series
from vnuma.analysis.simulate import Layout, Simulated
from vnuma.analysis.stopping import first_look, stop_on_precision
from vnuma.analysis.variance import Noise, cell_sd, median_variance, noise, pilot_upper
from vnuma.analysis.wording import plans_sentence, split_sentence

BLOCKS = (6, 7, 8, 10, 12, 16, 20)
DESIGN = AnalysisDesign(
    reference="1x16", columns=columns_of(), sizes=(1000,), forms=("client",), vms=("sql16",), blocks=24
)
"""Four arms against a reference with A/A."""


@pytest.mark.parametrize(
    ("m", "c"),
    [(1, "1.00000"), (3, "0.448671"), (5, "0.286834"), (7, "0.210447"), (2, "0.5000"), (4, "0.2982")],
)
def test_the_variance_of_a_median(m: int, c: str) -> None:
    """c_m has the published values; of even numbers it is that of the mean of the middle two."""
    assert f"{median_variance(m):.{len(c) - 2}f}" == c


def test_what_there_is_nothing_of_is_refused() -> None:
    """No iteration, no median; a reference alone compares nothing."""
    with pytest.raises(ValueError, match="at least one"):
        median_variance(0)
    with pytest.raises(ValueError, match="compares nothing"):
        layout_of(replace(DESIGN, columns=(Column("1x16", "1x16"),)), 8)


def test_cell_sd_shares_the_boot_over_sizes() -> None:
    """Sizes average the iterations' noise, not the boot's."""
    assert cell_sd(0.005, 0.005, 3) == pytest.approx(0.005 * math.sqrt(1.448671))
    assert cell_sd(0.005, 0.005, 3, sizes=4) == pytest.approx(0.005 * math.sqrt(1 + 0.448671 / 4))


def test_noise_of_several_sizes_shares_the_boot() -> None:
    """With four sizes a quarter of the iterations' variance is left in a cell; the rest is the boot's."""
    generator = np.random.default_rng(4)
    boot = generator.normal(0, 0.01, 3000)
    times = 1000 * np.exp(boot[:, None, None] + generator.normal(0, 0.03, (3000, 4, 3)))
    boots = [
        Boot("R", "R", i, None, tuple(tuple(map(float, size)) for size in row)) for i, row in enumerate(times)
    ]
    y = np.log(np.median(times, axis=2)).mean(axis=1)
    found = noise(float(np.var(y, ddof=1)), 2999, boots)
    assert found.within_sd == pytest.approx(0.03, rel=0.03)
    assert found.boot_sd == pytest.approx(0.01, rel=0.06)


def test_pilot_upper_bound_is_exceeded_in_one_pilot_of_five() -> None:
    """The planning variance is at least the true one in 80% of pilots."""
    ms = stats.chi2.rvs(8, size=4000, random_state=1) / 8
    share = np.mean([pilot_upper(float(value), 8) >= 1 for value in ms])
    assert share == pytest.approx(0.80, abs=0.02)


@pytest.mark.parametrize(
    ("arms", "references", "published"),
    [
        (4, 1, (2.34, 2.09, 1.91, 1.66, 1.47, 1.26, 1.11)),
        (4, 2, (2.05, 1.84, 1.66, 1.44, 1.29, 1.09, 0.96)),
    ],
)
def test_detectable_ratios_are_the_published_ones(
    arms: int, references: int, published: tuple[float, ...]
) -> None:
    """80% power needs the published delta/sigma, within the Monte Carlo error of both tables."""
    found = [ratio_needed(Layout(arms, references, blocks)) for blocks in BLOCKS]
    assert found == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("references", [1, 2])
def test_one_arm_needs_what_the_paired_t_needs(references: int) -> None:
    """The simulated delta/sigma of a single arm has 80% power by scipy's noncentral t."""
    for blocks in BLOCKS:
        effect = ratio_needed(Layout(1, references, blocks)) / math.sqrt((1 + 1 / references) / blocks)
        exact = stats.nct.sf(stats.t.ppf(0.975, blocks - 1), blocks - 1, effect)
        assert exact == pytest.approx(0.80, abs=0.02)


@pytest.mark.parametrize(
    ("references", "published"),
    [(1, (2.37, 2.13, 1.96, 1.71, 1.53, 1.30, 1.15)), (2, (2.07, 1.87, 1.72, 1.49, 1.34, 1.14, 1.00))],
)
def test_equivalence_ratios_are_the_published_ones(references: int, published: tuple[float, ...]) -> None:
    """The same for calling an arm without effect equivalent."""
    found = [ratio_for_equivalence(Layout(4, references, blocks)) for blocks in BLOCKS]
    assert found == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize(
    ("boot_sd", "without", "with_a_a", "equivalent"),
    [
        (0.002, (16, 6, 6, 6), (13, 6, 6, 6), (6, 6)),
        (0.005, (34, 10, 6, 6), (28, 9, 6, 6), (11, 9)),
        (0.010, (104, 28, 9, 6), (80, 22, 7, 6), (30, 24)),
    ],
)
def test_blocks_for_80_percent_are_the_published_ones(
    boot_sd: float, without: tuple[int, ...], with_a_a: tuple[int, ...], equivalent: tuple[int, int]
) -> None:
    """Blocks for 0.5, 1, 2 and 3%: the published table, give or take one step of the simulation."""
    sigma = cell_sd(boot_sd, 0.005, 3)
    for references, published in ((1, without), (2, with_a_a)):
        found = [
            blocks_for(ratio_needed, effect, sigma, 4, references) for effect in (0.005, 0.01, 0.02, 0.03)
        ]
        assert found == pytest.approx(published, rel=0.08)
    found_equivalent = [
        blocks_for(ratio_for_equivalence, 0.01, sigma, 4, references) for references in (1, 2)
    ]
    assert found_equivalent == pytest.approx(equivalent, rel=0.08)


def test_power_at_the_detectable_effect_is_80_percent() -> None:
    """Power and detectable effect are one relation read both ways; more blocks, more power."""
    layout = Layout(4, 2, 8)
    effect = detectable_effect(0.006, layout)
    assert power(effect, 0.006, layout) == pytest.approx(0.80, abs=0.002)
    assert power(effect, 0.006, Layout(4, 2, 12)) > 0.9
    assert 0 < power_equivalent(0.01, 0.006, layout) < 1


def test_simulated_rule_is_the_rule() -> None:
    """The vectorised rule gives the same half-widths and estimates as the comparison itself."""
    generator = np.random.default_rng(8)
    y = generator.normal(size=(25, 6, 6)) * np.where(generator.random((25, 1, 6)) < 0.2, 3, 1)
    fast = Simulated(y, 2)
    bases = set()
    for study in range(25):
        slow = compare(as_grid(np.exp(y[study] / 100)), ("R", "A"), {a: a for a in LABELS[2:]})
        for arm, contrast in enumerate(slow.contrasts):
            assert contrast.inference is not None
            bases.add(contrast.inference.basis)
            assert contrast.log_ratio == pytest.approx(fast.estimate[study, arm] / 100, abs=1e-12)
            assert contrast.inference.half_width == pytest.approx(fast.half_width_95[study, arm] / 100)
            inner = math.log(contrast.inference.equivalence.high) - (contrast.log_ratio or 0)
            assert inner == pytest.approx(fast.half_width_90[study, arm] / 100)
    assert bases == {"pooled", "own"}


@pytest.mark.parametrize(
    ("widths", "blocks", "columns", "stop", "reason"),
    [
        ((0.009, 0.008), 8, 6, True, "precise"),
        ((0.011, 0.008), 8, 6, False, "not yet"),
        ((0.001, 0.001), 5, 6, False, "too early"),
        ((0.001, 0.001), 7, 3, False, "too early"),
        ((0.001, 0.001), 8, 3, True, "precise"),
        ((0.05, 0.05), 24, 6, True, "cap"),
        ((0.001, None), 10, 6, False, "not yet"),
        ((), 10, 6, False, "not yet"),
    ],
)
def test_precision_stopping(
    widths: tuple[float | None, ...], blocks: int, columns: int, stop: bool, reason: str
) -> None:
    """Stop when every interval is narrow, never before block 6 (8 with few columns), always at the cap."""
    decision = stop_on_precision(widths, blocks, columns, target=0.01, cap=24)
    assert (decision.stop, decision.reason) == (stop, reason)


def test_half_widths_come_from_the_comparison() -> None:
    """G1's intervals are 0.48% wide on either side: precise at 0.5%, not at 0.45%."""
    widths = compare_ms(G1_MS).half_widths
    assert stop_on_precision(widths, 6, 6, 0.005, 24).stop
    assert not stop_on_precision(widths, 6, 6, 0.0045, 24).stop
    assert first_look(6) == 6


@pytest.mark.parametrize(("blocks", "arms"), [(6, 4), (12, 1)])
def test_what_an_arm_by_its_own_pairs_detects_has_80_percent_power(blocks: int, arms: int) -> None:
    """By scipy's noncentral t: the paired test with Bonferroni finds that effect in 80% of studies."""
    shift = detectable_by_pairs(0.006, blocks, arms)
    critical = stats.t.ppf(1 - 0.05 / (2 * arms), blocks - 1)
    found = stats.nct.sf(critical, blocks - 1, shift / 0.006 * math.sqrt(blocks))

    assert found == pytest.approx(0.80, abs=1e-6)


@pytest.mark.parametrize(("blocks", "arms"), [(6, 4), (20, 1)])
def test_what_an_arm_by_its_own_pairs_is_called_equivalent_within(blocks: int, arms: int) -> None:
    """Two one-sided tests by scipy's distributions, integrated over the SD that is found: 80%."""
    df, shift = blocks - 1, equivalent_by_pairs(1.0, blocks, arms) * math.sqrt(blocks)
    critical = stats.t.ppf(1 - 0.05 / arms, df)
    found = integrate.quad(
        lambda s: (
            2 * s * df * stats.chi2.pdf(s * s * df, df) * (2 * stats.norm.cdf(shift - critical * s) - 1)
        ),
        0,
        shift / critical,
    )[0]

    assert found == pytest.approx(0.80, abs=0.002)


def test_blocks_for_an_effect_are_those_of_the_published_table() -> None:
    """4 arms with A/A, 0.5% between boots and within them: 9 blocks for 1%, 9 for equivalence."""
    found = needed(DESIGN, typical_spread(3, 1), 0.01)

    assert (found.to_detect, found.for_equivalence) == (9, 9)
    assert needed(DESIGN, Spread("a storm", 0.05), 0.01).to_detect is None


def test_more_sizes_make_a_cell_steadier() -> None:
    """They share the boot and not the iterations."""
    assert [a.cell_sd > b.cell_sd for a, b in zip(assumed_spreads(3, 1), assumed_spreads(3, 4), strict=True)]


def test_an_outlook_needs_six_blocks_and_says_what_is_in_reach() -> None:
    """The effect in reach is found in 80% of studies; below 6 blocks no word is given."""
    spread = Spread("0.6%", 0.006)
    seen = outlook(DESIGN, 8, spread, 0.01)

    assert outlook(DESIGN, 5, spread, 0.01) is None
    assert seen is not None
    again = outlook(DESIGN, 8, spread, seen.detectable)
    assert again is not None
    assert again.power == pytest.approx(0.80, abs=0.002)
    assert seen.power < again.power or seen.detectable <= 0.01


def test_precision_ends_a_study_as_the_specification_simulated_it() -> None:
    """1% at SD 0.6% (0.5% and 0.5%), 4 arms with A/A: 7.5 blocks on average; 0.5%: 17.2, cap 24."""
    spread = typical_spread(3, 1)

    assert ending(DESIGN, 0.01, spread).mean_blocks == pytest.approx(7.5, abs=0.2)
    slow = ending(DESIGN, 0.005, spread)
    assert slow.mean_blocks == pytest.approx(17.2, abs=0.4)
    assert 0.05 < slow.capped < 0.2
    assert ending(DESIGN, 0.001, spread).capped == 1.0


def design(blocks: int) -> AnalysisDesign:
    """Of at most so many blocks, which arms leave when they are decided."""
    return replace(DESIGN, blocks=blocks, stop="decided")


@pytest.mark.parametrize(
    ("cell_sd", "boots"),
    [(0.0045, 48.5), pytest.param(0.0060, 65.0, marks=pytest.mark.long)],
    ids=["boots' SD 0.3%", "0.5%"],
)
def test_likely_boots_are_those_of_an_independent_simulation(cell_sd: float, boots: float) -> None:
    """Arms at 0, 0.5, 1 and 3%, at most 24 blocks; three Monte Carlo errors of 400 studies."""
    found = leaving(design(24), Spread("one size", cell_sd))

    assert found.likely_boots == pytest.approx(boots, abs=3.0)
    assert found.fewest_boots < found.likely_boots < found.most_boots <= 144
    assert found.decided > 0.95


@pytest.mark.parametrize(
    ("sd", "blocks"),
    [
        (0.0038, 8),
        pytest.param(0.0060, 16, marks=pytest.mark.long),
        pytest.param(0.02, None, marks=pytest.mark.long),
    ],
)
def test_the_advised_blocks_decide_every_arm_in_four_of_five_studies(sd: float, blocks: int | None) -> None:
    """What is advised is simulated with as many blocks; 400 studies, three Monte Carlo errors.

    At an SD of 2% every design that is offered leaves some arm undecided in most studies.
    """
    advised = leaving(design(12), Spread("one size", sd)).advised_blocks

    assert advised == blocks
    assert advised is None or leaving(design(advised), Spread("one size", sd)).decided > 0.80 - 3 * 0.02


def test_a_design_without_a_a_is_advised_more_blocks() -> None:
    """The reference's own error is larger: with 16 blocks, 56% of its studies decide every arm (1,000)."""
    single = replace(design(16), columns=columns_of(a_a=False))
    found = leaving(single, Spread("0.6%", 0.0062))

    assert found.decided < 0.80
    assert found.advised_blocks == 24


def test_a_single_arm_is_planned_for_the_effect_that_is_hardest_to_decide() -> None:
    """Halfway between none and the band: planned for none, a study would be half as long."""
    assert effects_in_turn(1) == [0.5]
    assert sorted(effects_in_turn(4)) == [0.0, 0.5, 1.0, 3.0]


def test_the_split_finds_what_was_put_in() -> None:
    """4,000 boots with SD 0.4% between and 0.6% within, medians of three: shares within 5%."""
    rng = np.random.default_rng(11)
    middles = rng.normal(0, 0.004, (1000, 4))
    iterations = np.exp(middles[..., None] + rng.normal(0, 0.006, (1000, 4, 3)))
    full = fit(Grid(("a", "b", "c", "d"), tuple(range(1000)), np.log(np.median(iterations, axis=2))))
    boots = [
        Boot(str(k), str(k), b, None, (tuple(map(float, iterations[b, k])),))
        for b in range(1000)
        for k in range(4)
    ]
    found = noise(full.ms, full.df, boots)
    true_share = 0.004**2 / (0.004**2 + median_variance(3) * 0.006**2)

    assert (found.boot_sd, found.within_sd) == pytest.approx((0.004, 0.006), rel=0.05)
    assert found.boot_share == pytest.approx(true_share, rel=0.05)


def test_more_iterations_are_said_to_gain_what_is_theirs() -> None:
    """A quarter of the variance within boots: intervals would narrow by 14% at most."""
    share = Noise(0.01, 0.012, 20, 0.007, math.sqrt(0.75) * 0.01)

    none = Noise(0.01, 0.02, 9, 0.02, 0.0)  # a bound of the estimator: no promise that iterations suffice

    assert {"75%"} <= set(re.findall(r"\d+%", split_sentence(share, "boot")))
    gains = [re.findall(r"by (\d+)% at most", split_sentence(one, "boot")) for one in (share, none)]
    assert gains[0][0] == "14"
    assert gains[1] == []


@pytest.mark.parametrize(
    ("cost_boot", "cost_iteration", "within", "between", "iterations"),
    [(300, 275, 0.005, 0.005, 3), (300, 5, 0.01, 0.002, 7)],
)
def test_the_cheapest_iterations_are_those_of_the_closed_form(
    cost_boot: float, cost_iteration: float, within: float, between: float, iterations: int
) -> None:
    """Kalibera and Jones 2013: sqrt(cost ratio x variance ratio), where it is clear."""
    closed = math.sqrt(cost_boot / cost_iteration * within**2 / between**2)
    found = allocate(DESIGN, 0.006, (between, within), Costs(cost_boot, cost_iteration, 0))

    assert min((3, 5, 7), key=lambda m: abs(m - closed)) == iterations
    assert found.choices[0].iterations == iterations


def test_the_width_is_kept_in_new_studies() -> None:
    """In 80% of 4,000 studies drawn boot by boot; the comparison is that of the textbook's pooled error."""
    best = allocate(DESIGN, 0.008, (0.005, 0.008), Costs(300, 100, 1)).choices[0]
    rng = np.random.default_rng(17)
    boots = rng.normal(0, 0.005, (4000, best.blocks, 6))
    times = boots[..., None] + rng.normal(0, 0.008, (*boots.shape, best.iterations))
    kept = Simulated(np.median(times, axis=3), 2).half_width_95.max(axis=1) <= math.log(1.008)

    assert kept.mean() > 0.78
    fewer = Simulated(np.median(times, axis=3)[:, :-1], 2).half_width_95.max(axis=1) <= math.log(1.008)
    assert fewer.mean() < 0.80


def test_a_width_out_of_reach_has_no_choice() -> None:
    """More than 200 blocks are not offered."""
    found = allocate(DESIGN, 0.0001, (0.01, 0.01), Costs(300, 100, 1))

    assert found.choices == ()
    assert re.findall(r"\d+ blocks", plans_sentence(found, "boot")) == ["200 blocks"]


def test_the_plan_rests_on_the_upper_bound() -> None:
    """What the bound adds is between boots; the cell's SD is then the bound itself."""
    spread = upper_spread(Noise(0.01, 0.013, 10, 0.006, 0.009), 3, 2)

    assert spread is not None
    assert cell_sd(*spread, 3, 2) == pytest.approx(0.013)


def test_an_iteration_costs_all_sizes_and_forms() -> None:
    """Two iterations of two sizes at 4 s and 6 s: 10 s each, by the client's clock if it has the time."""
    series = [
        Series("R", "R", 1, "sql16", 1, "client", elapsed_ms=(1.0, 1.0), client_ms=(4000.0, 4000.0)),
        Series("R", "R", 1, "sql16", 2, "client", elapsed_ms=(1.0, 6000.0), client_ms=(6000.0, None)),
    ]

    assert iteration_seconds(series, 2) == {"sql16": pytest.approx(10.0)}


def test_the_sentence_names_the_cheapest_and_the_studys_own() -> None:
    """Iterations, blocks and hours, and the study's own unless they are the same."""
    plans = Plans(0.01, (Allocation(5, 8, 48, 12.34), Allocation(3, 9, 54, 13.0), Allocation(7, 8, 48, 14.0)))

    own, same = (
        re.findall(r"(\d+) iterations|(\d+) blocks", plans_sentence(plans, "boot", now)) for now in (3, 5)
    )
    assert own == [("", "8"), ("5", ""), ("3", ""), ("", "9")]
    assert same == [("", "8"), ("5", "")]
