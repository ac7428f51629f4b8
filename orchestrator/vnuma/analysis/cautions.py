"""What limits a result, as typed warnings with the next step, worst first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT, AaCheck, ControlCheck, Drift, FirstIteration, Slope
from vnuma.analysis.conclusions import differing_sizes_sentence
from vnuma.analysis.outliers import Bimodality
from vnuma.analysis.records import AnalysisDesign, Measure, worsening
from vnuma.analysis.result import Analysis, Caution
from vnuma.analysis.rounding import SHARE_OF_MARGIN, ClockStep, step_of
from vnuma.analysis.sensitivity import sensitivity
from vnuma.analysis.verdict import Label
from vnuma.analysis.wording import p_words
from vnuma.words.plain_text import capitalised, plural


def cautions(
    found: Analysis, design: AnalysisDesign, reference: Sequence[str], steps: Sequence[ClockStep]
) -> tuple[Caution, ...]:
    """Every warning that applies; those that withhold verdicts come first. `reference`: its columns with
    cells; `steps`: the sizes' own.
    """
    return (
        *_withholding(found, design),
        *_cells(found, design, reference),
        *_data(found, design, reference, steps),
        *_checks(found, design),
        *_spread(found, design),
    )


def _withholding(found: Analysis, design: AnalysisDesign) -> Iterator[Caution]:
    if not found.points:
        yield Caution(
            "no_data", "No cell gave a valid measurement.", "Check the reasons of the missing cells."
        )
    if design.order == "fixed":
        yield Caution(
            "fixed_order",
            "The arms ran in the same order in every block, so drift looks like an effect.",
            "Repeat with design.order: randomised.",
        )
    if isinstance(found.a_a, AaCheck) and found.a_a.state == "alarm":
        difference = (found.a_a.ratio - 1) * 100
        yield Caution(
            "aa_alarm",
            f"The reference arm differs from itself by {difference:+.2f}% ({p_words(found.a_a.p)}).",
            f"Find what changed between {plural(found.replicate)} (host load, power policy, other "
            "VMs), then repeat.",
        )
    control = found.positive_control
    if isinstance(control, ControlCheck) and not control.passed:
        yield Caution(
            "control_failed",
            f"The positive control {control.arm} was not found {control.expected}.",
            "An instrument that misses a known effect cannot show equivalence: check the workload.",
        )


def _cells(found: Analysis, design: AnalysisDesign, reference: Sequence[str]) -> Iterator[Caution]:
    """The workload's own caution, and what was not measured."""
    if design.caution is not None:
        yield Caution("workload", *design.caution)
    few = [item for item in found.arms if item.verdict.label is Label.TOO_FEW and item.verdict.boots > 0]
    absent = [item.arm for item in found.arms if item.verdict.boots == 0 and not item.verdict.left_out]
    if found.points and not reference:
        yield Caution(
            "reference_missing",
            f"The reference arm {design.reference} has no valid cell, so nothing can be compared.",
            "Repeat the cells of the reference arm.",
        )
    elif absent and found.points:
        yield Caution(
            "arm_missing",
            f"No block contains both {', '.join(absent)} and the reference arm.",
            "Repeat those cells.",
        )
    if few:
        least = few[0].verdict.boots_needed
        yield Caution(
            "too_few_boots",
            f"Fewer than {least} {plural(found.replicate)} for "
            f"{', '.join(item.arm for item in few)}: figures are provisional.",
            f"Run at least {MIN_BOOTS_FOR_VERDICT} blocks; 8 is the default, 10 to 12 for effects of 1%.",
        )
    if found.missing:
        yield Caution(
            "cells_missing",
            f"Cells in started blocks without a result: {len(found.missing)}.",
            "A resumed run repeats those that have attempts left; the fit works without the others.",
        )
    if found.blocks_not_begun and design.stop == "blocks":
        yield Caution(
            "blocks_not_begun",
            f"{found.blocks_not_begun} of {design.blocks} declared blocks were not "
            "started: a verdict checked after each block is wrong far more often than one at the end.",
            "Let the run end; resume it if it stopped. To stop early by a rule, declare design.precision "
            "or design.max_hours.",
        )


def _data(
    found: Analysis, design: AnalysisDesign, reference: Sequence[str], steps: Sequence[ClockStep]
) -> Iterator[Caution]:
    """What the measured cells cannot show."""
    if len(design.reference_labels) < 2:
        yield Caution("no_aa", "The reference arm was not run against itself.", "Set design.a_a: true.")
    elif len(reference) == 1:
        yield Caution(
            "aa_missing",
            "Only one of the reference arm's two columns has enough cells, so there is no A/A check.",
            "Repeat the other column's cells.",
        )
    yield from _steps(found, design, steps)
    if any(len(times) < 3 for point in found.points for times in point.iterations):
        yield Caution(
            "few_iterations",
            f"Some {plural(found.replicate)} have fewer than 3 timed iterations: one slow "
            "iteration moves their median.",
            "Set design.iterations: 3 (an odd number, at most 7).",
        )


def _steps(found: Analysis, design: AnalysisDesign, steps: Sequence[ClockStep]) -> Iterator[Caution]:
    """Sizes whose step is too large a share of the equivalence band, or that show none."""
    sized = [(index, f"at size {size:,}", steps[index]) for index, size in enumerate(design.sizes)]
    unit, finer = found.measure.unit, ""
    if design.printed:
        finer = ", or print more digits"
    elif found.measure.key == "elapsed_ms":
        finer = ", or set workload.clock: query_stats"
    band = math.log1p(design.equivalence) * SHARE_OF_MARGIN
    same = [
        f"{where} all are {found.points[0].iterations[index][0]:,.10g} {unit}"
        for index, where, step in sized
        if step.alike
    ]
    coarse = [
        f"{where} steps of {step_of(figures):.3g} {unit}, {step.relative * 100:.1f}% of the figure"
        for index, where, step in sized
        if not step.alike and step.relative > band
        for figures in [[x for point in found.points for x in point.iterations[index]]]
    ]
    if coarse:
        yield Caution(
            "coarse_clock",
            f"{_moved(found.measure)} come in steps: {'; '.join(coarse)}. Intervals include the steps; no "
            f"arm is called equivalent where a step exceeds a third of {design.equivalence * 100:g}%.",
            f"Measure larger sizes{finer}.",
        )
    if same:
        yield Caution(
            "no_variation",
            f"No variation was seen: {'; '.join(same)}. Their steps are unknown: intervals include "
            f"{'one of the last digit' if design.printed else 'the whole figure'}, and no arm is called "
            "equivalent.",
            f"Check in the raw data that each iteration measures anew; then measure larger sizes{finer}.",
        )


def _checks(found: Analysis, design: AnalysisDesign) -> Iterator[Caution]:
    if isinstance(found.a_a, AaCheck) and found.a_a.state == "note":
        yield Caution(
            "aa_note",
            f"The reference arm against itself gives {p_words(found.a_a.p)}, as happens in 1 of 20 good "
            "runs.",
            "Nothing to do after one run; check the host if it happens again.",
        )
    if isinstance(found.drift, Drift):
        for name, slope, unit in (
            ("drift_blocks", found.drift.between_blocks, "from block to block"),
            ("drift_within", found.drift.within_blocks, "from cell to cell within blocks"),
        ):
            if isinstance(slope, Slope) and slope.alarm:
                moved = f"{_moved(found.measure)} moved by {slope.slope * 100:+.2f}%"
                yield Caution(
                    name,
                    f"{moved} {unit} ({p_words(slope.p)}).",
                    f"{_against_drift(design)} Check what changed on the host.",
                )
    if isinstance(found.sentinel, Drift):
        slopes = (found.sentinel.between_blocks, found.sentinel.within_blocks)
        if any(isinstance(slope, Slope) and slope.alarm for slope in slopes):
            yield Caution(
                "sentinel_drift",
                "The sentinel, a query that no arm should change, drifted during the run.",
                "The host itself was not steady: check its load and power policy, then repeat.",
            )
    first = found.first_iteration
    if not isinstance(first, FirstIteration):
        return
    behind = math.expm1(worsening(math.log(first.ratio), found.measure.better)) * 100
    if first.alarm and behind >= 0.05:  # it is shown with one decimal
        yield Caution(
            "first_iteration",
            f"The first timed iteration is slower than the rest by {behind:.1f}%.",
            "Add a warm-up: raise design.warmups.",
        )


def _moved(measure: Measure) -> str:
    return "Times" if measure.unit == "ms" else capitalised(measure.name)


def _spread(found: Analysis, design: AnalysisDesign) -> Iterator[Caution]:
    one = found.replicate
    if found.differing_sizes:
        yield Caution(
            "size_apart",
            differing_sizes_sentence(found.differing_sizes, design.size_word),
            "Report each size: the overall verdict averages them.",
        )
    apart = [flag.label for flag in found.gate if flag.testable and flag.apart]
    if apart:
        yield Caution(
            "variance_gate",
            f"{', '.join(apart)} varied far more from {one} to {one} than the other columns.",
            "Every comparison rests on its own paired error. Look for what disturbed it, or plan more "
            "blocks in a new run.",
        )
    own = [item for item in found.arms if item.contrast.rests_on_pairs and not item.verdict.withheld]
    held = [item.arm for item in own if item.verdict.look and item.verdict.label is Label.UNDECIDED]
    if held and found.gate:  # a single arm has its own pairs whatever the gate says
        yield Caution(
            "held_by_gate",
            f"Undecided on its own pairs: {', '.join(held)}. Some column varied more than the others, so the "
            "pooled error was not used.",
            "Look for what disturbed that column, or declare a larger max_blocks in a new run.",
        )
    if found.odd_cells:
        cells = [
            f"{cell.label} in block {cell.block} ({math.expm1(cell.residual) * 100:+.1f}%)"
            for cell in found.odd_cells
        ]
        yield Caution(
            "odd_cells",
            f"Far from the rest: {', '.join(cells)}.",
            "They are kept. Check the facts of their attempts.",
        )
    if isinstance(found.bimodality, Bimodality) and found.bimodality.flagged:
        yield Caution(
            "bimodal",
            f"{plural(one).capitalize()} fall into two groups.",
            f"Look for a state in which each {one} starts (NUMA home node, page sizes); do not trim it.",
        )
    said = [
        f"{item.arm} ({'; '.join(seen.dissent)})"
        for item in found.arms
        if (seen := sensitivity(item)).dissent
    ]
    if said:
        yield Caution(
            "sensitivity",
            f"Secondary methods disagree with the verdict for {', '.join(said)}.",
            f"Look at the {plural(one)} of that arm; more blocks will settle it.",
        )


def _against_drift(design: AnalysisDesign) -> str:
    """The design's protection against drift, and what the next one could do."""
    if design.order == "fixed":
        return "In a fixed order drift looks like an effect."
    if design.place != "none":
        return "The comparison adjusts for the place in the block."
    return (
        "Random order keeps the comparison fair, with wider intervals; in a new study, "
        "design.covariate: place may narrow them."
    )
