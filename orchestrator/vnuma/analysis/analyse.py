"""From iterations to a run's complete result: the single entry point."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from vnuma.analysis.cautions import cautions
from vnuma.analysis.cells import Boot, Cells, collect, grid, steps_of
from vnuma.analysis.checks import (
    MIN_BOOTS_FOR_VERDICT,
    ControlCheck,
    check_a_a,
    check_control,
    check_drift,
    check_first_iteration,
    check_sentinel,
)
from vnuma.analysis.compare import Comparison, compare
from vnuma.analysis.conclusions import differing_sizes, near_best, recommend, without_opposed
from vnuma.analysis.fit import with_places
from vnuma.analysis.growth import Growth, doubled_work, growth, slope_score, slope_weights
from vnuma.analysis.outliers import bimodality
from vnuma.analysis.planning import detectable, with_blocks_needed
from vnuma.analysis.records import COMPANIONS, AnalysisDesign, CellRecord, Measure, NotEvaluated, Series
from vnuma.analysis.result import (
    Analysis,
    ArmResult,
    CellPoint,
    RunResult,
    SizeResult,
    figure_rows,
    table_row,
)
from vnuma.analysis.rounding import ClockStep, rounding_of
from vnuma.analysis.stopping import FIRST_LOOK, DecidedLook, RepeatedLooks, StopDecision, stop_on_precision
from vnuma.analysis.variance import noise
from vnuma.analysis.verdict import (
    Label,
    Rules,
    Withheld,
    decide,
    equivalence_withheld,
    rules_for,
    run_withheld,
)

ALPHA = 0.05


def analyse(series: Iterable[Series], cells: Sequence[CellRecord], design: AnalysisDesign) -> RunResult:
    """Analyse a run, complete or not. VMs are never pooled: each is analysed separately.

    `series` are those of valid attempts; those of any other cell are ignored. Raises ValueError if a cell has
    two of one size and form.
    """
    # One pass over the series, one over the cells: a fleet has many.
    series_of: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for one in series:
        series_of[one.vm, one.form].append(one)
    cells_of: dict[str, list[CellRecord]] = defaultdict(list)
    for cell in cells:
        cells_of[cell.vm].append(cell)
    analyses = tuple(
        analyse_one(
            collect(series_of[vm, form], cells_of[vm], design, vm=vm, form=form, measure=measure),
            design,
            vm,
            form,
            measure,
        )
        for vm in design.vms
        for form in design.forms
        for measure in _measures(series_of[vm, form], design, form)
    )
    figures = tuple(
        row
        for vm in design.vms
        for form in design.forms
        for row in figure_rows(series_of[vm, form], cells_of[vm], design, vm=vm, form=form)
    )
    return RunResult(design, analyses, figures)


def compare_cells(cells: Cells, design: AnalysisDesign) -> Comparison:
    """Only the primary comparison, on the mean over sizes, as a stopping rule uses it."""
    sizes = len(design.sizes)
    return _compare(cells, design, lambda boot: boot.log_mean, ALPHA, [1 / sizes] * sizes)


def precision_look(
    series: Iterable[Series],
    cells: Sequence[CellRecord],
    design: AnalysisDesign,
    *,
    vm: str,
    target: float,
) -> StopDecision:
    """Whether this VM may stop, by the declared rule on the primary form, after a complete block.

    `target` is a ratio: 0.01 stops when every 95% half-width is at most 1%. The cap is `design.blocks`.
    """
    form = design.forms[0]
    found = collect(series, cells, design, vm=vm, form=form, measure=design.measure(form))
    widths = compare_cells(found, design).half_widths
    return stop_on_precision(widths, found.complete, len(design.columns), target, design.blocks)


def decided_look(
    series: Iterable[Series], cells: Sequence[CellRecord], design: AnalysisDesign, *, vm: str
) -> DecidedLook:
    """Which arms leave this VM's run now, by the primary form and what its finished blocks show.

    A function of the stored cells alone, so that a resumed run decides likewise. The A/A check is not asked:
    it is made once, at the end.
    """
    form = design.forms[0]
    measure = design.measure(form)
    found = collect(series, cells, design, vm=vm, form=form, measure=measure)
    comparison = compare_cells(found, design)
    rules = _rules(comparison, design, measure, None)
    staying = [item for item in comparison.contrasts if item.label not in found.left_after]
    said = {item.label: decide(item, rules, ALPHA).label for item in staying}
    leave = {label: word.value for label, word in said.items() if word in _DECIDED}
    return DecidedLook(found.finished, leave, tuple(label for label in said if label not in leave))


_DECIDED = (Label.SLOWER, Label.FASTER, Label.EQUIVALENT)


def _rules(
    comparison: Comparison, design: AnalysisDesign, measure: Measure, withheld: Withheld | None
) -> Rules:
    """The rules of one comparison. Where arms leave, nothing is equivalent before the control has passed."""
    control = _control(comparison, design, measure)
    rules = rules_for(design.equivalence, withheld, control, measure.better, design.replicate)
    if design.stop != "decided":
        return rules
    rules = replace(rules, least=FIRST_LOOK)
    if design.positive_control is None or (isinstance(control, ControlCheck) and control.passed):
        return rules
    return replace(rules, control_failed=True, control_arm=design.positive_control.arm)


def _control(comparison: Comparison, design: AnalysisDesign, measure: Measure) -> ControlCheck | NotEvaluated:
    least = FIRST_LOOK if design.stop == "decided" else MIN_BOOTS_FOR_VERDICT
    known = comparison.contrasts
    return check_control(design.positive_control, known, measure.better, design.replicate, least)


def analyse_one(cells: Cells, design: AnalysisDesign, vm: str, form: str, measure: Measure) -> Analysis:
    """One VM, form and measure."""
    comparison = compare_cells(cells, design)
    full = comparison.fit
    a_a = check_a_a(comparison)
    control = _control(comparison, design, measure)
    repeated = design.stop == "decided"
    # That every arm has too few boots is a better reason than that the run goes on.
    few = all(item.boots < MIN_BOOTS_FOR_VERDICT for item in comparison.contrasts)
    ended = repeated or cells.at_declared_end or few
    rules = _rules(comparison, design, measure, run_withheld(design.order, a_a, ended=ended))
    spread = noise(full.ms if full else None, full.df if full else 0, cells.boots)
    arms = _arms(comparison, rules, ALPHA, cells, design)
    if not repeated:
        arms = with_blocks_needed(arms, comparison, spread, rules)
    by_size = tuple(_at_size(cells, design, index) for index in range(len(design.sizes)))
    sizes = tuple(
        SizeResult(size, _arms(item, rules, item.alpha, cells, design))
        for size, item in zip(design.sizes, by_size, strict=True)
    )
    arms = without_opposed(arms, sizes)
    positions = {(boot.block, boot.label): boot.position for boot in cells.boots if boot.position is not None}
    nothing = NotEvaluated("no cell can be compared")
    found = Analysis(
        vm=vm,
        form=form,
        measure=measure,
        replicate=design.replicate,
        primary=form == design.forms[0] and measure == design.measure(form),
        blocks=len({boot.block for boot in cells.boots}),
        complete_blocks=cells.complete,
        blocks_not_begun=cells.blocks_not_begun,
        at_declared_end=cells.at_declared_end,
        ended_by=cells.ended_by,
        points=_points(cells.boots),
        missing=cells.missing,
        table=tuple(table_row(i, cells.boots, design, item.contrasts) for i, item in enumerate(by_size)),
        arms=arms,
        sizes=sizes,
        differing_sizes=differing_sizes(arms, sizes),
        growth=_growth(cells, design, rules),
        a_a=a_a,
        positive_control=control,
        gate=comparison.gates,
        drift=check_drift(full.unadjusted, positions) if full else nothing,
        sentinel=check_sentinel(cells.boots, [column.label for column in design.columns]),
        first_iteration=check_first_iteration(cells.boots, measure.better),
        odd_cells=comparison.odd,
        bimodality=bimodality(full) if full else nothing,
        noise=spread,
        df=full.df if full else 0,
        detectable_effect=NotEvaluated("each arm leaves when it is decided")
        if repeated
        else detectable(comparison, spread, design.order),
        withheld=rules.withheld,
        recommended=_recommended(arms, comparison, rules, cells, design),
        cautions=(),
    )
    return replace(found, cautions=cautions(found, design, comparison.reference, cells.steps))


def _measures(series: Sequence[Series], design: AnalysisDesign, form: str) -> tuple[Measure, ...]:
    """The declared measure, so that its absence is reported, and the recorded companions.

    Windows of time have no companions: more calls take more CPU time, which is not worse.
    """
    if not design.fixed_work:
        return (design.measure(form),)
    recorded = (item for item in COMPANIONS if any(one.measured(item.key) for one in series))
    return (design.measure(form), *recorded)


def _compare(
    cells: Cells,
    design: AnalysisDesign,
    value: Callable[[Boot], float],
    alpha: float,
    weights: Sequence[float],
) -> Comparison:
    """`weights`: the weight of each size's ln(median) in `value`.

    Where arms leave, each contrast is that of the arm's last look, and the rest is of all cells.
    """
    if design.stop != "decided":
        return _compare_boots(cells.boots, cells.steps, design, value, alpha, weights)
    planned = sum(column.label not in cells.left_out for column in design.compared)
    looks = RepeatedLooks(alpha, planned, design.blocks)
    at = _looks(cells, design)
    found = {
        block: _compare_boots(boots, steps_of(boots, design), design, value, alpha, weights, looks)
        for block in {*at.values()}
        for boots in [[boot for boot in cells.boots if boot.block <= block]]
    }
    whole = _compare_boots(cells.boots, cells.steps, design, value, alpha, weights, looks)
    contrasts = (
        item for block, other in found.items() for item in other.contrasts if at[item.label] == block
    )
    order = [column.label for column in design.compared]
    return replace(whole, contrasts=tuple(sorted(contrasts, key=lambda item: order.index(item.label))))


def _looks(cells: Cells, design: AnalysisDesign) -> dict[str, int]:
    """For each compared label, the block of its last look: where it left, else the last finished one."""
    return {column.label: cells.left_after.get(column.label, cells.finished) for column in design.compared}


def _compare_boots(
    boots: Sequence[Boot],
    steps: Sequence[ClockStep],
    design: AnalysisDesign,
    value: Callable[[Boot], float],
    alpha: float,
    weights: Sequence[float],
    looks: RepeatedLooks | None = None,
) -> Comparison:
    arms = {column.label: column.arm for column in design.compared}
    labels = [column.label for column in design.columns]
    cells = with_places(grid(boots, labels, value), boots, design.place, len(labels))
    return compare(cells, design.reference_labels, arms, alpha, rounding_of(steps, weights), looks)


def _at_size(cells: Cells, design: AnalysisDesign, index: int) -> Comparison:
    """One size, at the level at which all sizes hold together."""
    level = ALPHA / len(design.sizes)
    alone = [float(other == index) for other in range(len(design.sizes))]
    return _compare(cells, design, lambda boot: math.log(boot.medians[index]), level, alone)


def _arms(
    comparison: Comparison, rules: Rules, alpha: float, cells: Cells, design: AnalysisDesign
) -> tuple[ArmResult, ...]:
    looks = _looks(cells, design) if design.stop == "decided" else {}
    return tuple(
        ArmResult(
            item.arm,
            item,
            replace(verdict, left_out=item.arm in cells.left_out, look=looks.get(item.label)),
        )
        for item in comparison.contrasts
        for verdict in [decide(item, rules, alpha)]
    )


def _growth(cells: Cells, design: AnalysisDesign, rules: Rules) -> tuple[Growth, ...] | NotEvaluated:
    if len(design.sizes) < 2:
        return NotEvaluated("one size only")
    weights = slope_weights(design.sizes, design.size_word)
    comparison = _compare(cells, design, slope_score(design.sizes, design.size_word), ALPHA, weights)
    doubled = doubled_work(design.size_word)
    return tuple(growth(item, rules.withheld, rules.better, doubled) for item in comparison.contrasts)


def _recommended(
    arms: Sequence[ArmResult], comparison: Comparison, rules: Rules, cells: Cells, design: AnalysisDesign
) -> tuple[str, ...]:
    """The arms to use, without the positive control, which is not a configuration. Those less than the band
    behind the best are known only where equality could be shown.
    """
    control = design.positive_control.arm if design.positive_control else None
    near: tuple[str, ...] = ()
    if not rules.withheld and not any(equivalence_withheld(item, rules) for item in comparison.contrasts):
        none = {control, *cells.left_out}
        candidates = {column.arm: (column.label,) for column in design.compared if column.arm not in none}
        together = {design.reference: comparison.reference, **candidates}
        near = near_best(comparison, together, math.log1p(design.equivalence), rules.better)
    return recommend(design.reference, [arm for arm in arms if arm.arm != control], near)


def _points(boots: Sequence[Boot]) -> tuple[CellPoint, ...]:
    means = {
        label: float(np.mean([boot.log_mean for boot in boots if boot.label == label]))
        for label in {boot.label for boot in boots}
    }
    return tuple(
        CellPoint(
            label=boot.label,
            arm=boot.arm,
            block=boot.block,
            position=boot.position,
            value=math.exp(boot.log_mean),
            from_column=boot.log_mean - means[boot.label],
            medians=boot.medians,
            iterations=boot.iterations,
        )
        for boot in boots
    )
