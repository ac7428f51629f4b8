"""Variances, power, blocks and precision stopping."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from tests.unit.analysis.data import G1_MS, LABELS, as_grid, compare_ms
from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import compare
from vnuma.analysis.planning import (
    blocks_for_equivalence,
    blocks_to_detect,
    detectable_by_pairs,
    detectable_effect,
    equivalent_by_pairs,
    power,
    power_equivalent,
    ratio_for_equivalence,
    ratio_needed,
)
from vnuma.analysis.simulate import Layout, Simulated
from vnuma.analysis.stopping import first_look, stop_on_precision
from vnuma.analysis.variance import cell_sd, median_variance, noise, pilot_upper

BLOCKS = (6, 7, 8, 10, 12, 16, 20)


@pytest.mark.parametrize(("m", "c"), [(1, 1.0), (3, 0.448671), (5, 0.286834), (7, 0.210447)])
def test_median_variance_of_odd_numbers(m: int, c: float) -> None:
    """c_m has the published values."""
    assert median_variance(m) == pytest.approx(c, abs=5e-7)


@pytest.mark.parametrize(("m", "c"), [(2, 0.5), (4, 0.2982)])
def test_median_variance_of_even_numbers(m: int, c: float) -> None:
    """Even numbers work too: the mean of two, and the mean of the middle two of four."""
    assert median_variance(m) == pytest.approx(c, abs=5e-5)


def test_median_of_nothing_is_refused() -> None:
    """No iteration, no median."""
    with pytest.raises(ValueError, match="at least one"):
        median_variance(0)


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
        found = [blocks_to_detect(effect, sigma, 4, references) for effect in (0.005, 0.01, 0.02, 0.03)]
        assert found == pytest.approx(published, rel=0.08)
    found_equivalent = [blocks_for_equivalence(0.01, sigma, 4, references) for references in (1, 2)]
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
