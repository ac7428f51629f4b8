"""Analyses, arms and sizes of the results document."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from vnuma.analysis.result import Analysis, ArmResult, TableCell, TableRow
from vnuma.analysis.sensitivity import sensitivity
from vnuma.analysis.verdict import Label, Verdict
from vnuma.analysis.wording import LEFT_OUT, too_few
from vnuma.domain.workloads.metric import none_valid
from vnuma.report.export import parts


class ArmPart(parts.Part):
    """An arm against the reference, over all sizes. Ratios: figure of the arm / figure of the reference."""

    arm: str
    boots: parts.Count = Field(description="Blocks with both the arm and the reference: n.")
    ratio: float | None = Field(description="Above 1 is slower; faster where higher is better.")
    level: float = Field(description="Simultaneous level of interval_95 over all arms, as a share.")
    interval_95: parts.Limits
    interval_90: parts.Limits = Field(description="Decides equivalence.")
    adjusted_p: float | None = Field(
        description="Below 0.05 exactly when interval_95 excludes 1; null with repeated looks."
    )
    error: Literal["pooled", "own"] | None = Field(description="The error behind the interval.")
    df: parts.Number | None
    rank_ratio: float | None = Field(description="Hodges-Lehmann; secondary.")
    rank_interval: parts.Limits
    verdict: parts.VerdictWord
    look: int | None = Field(description="With `stop: decided`: the blocks at the last look at this arm.")
    withheld: str | None = Field(description="Why the verdict is withheld.")
    provisional: bool
    detectable: bool = Field(description="Equivalent, yet interval_95 excludes 1.")
    unseen_share: float | None = Field(
        description="For equivalent: the largest share of boots that may be `noticeable_shift` away."
    )
    noticeable_shift: float | None = Field(description="From this shift on a boot is odd: 0.03 is 3%.")
    boots_apart: tuple[float, ...] = Field(description="The arm's odd boots beyond the band, as ratios.")
    reference_boots_apart: tuple[float, ...] = Field(description="The same of the reference.")
    ratio_of_others: float | None = Field(description="The ratio in blocks without any of those boots.")
    beyond_margin: bool = Field(description="The whole interval lies beyond the equivalence band.")
    rank_supports: bool | None
    leave_one_out: parts.Limits = Field(description="Range of the ratio, each pair left out once; secondary.")
    sign_flip_p: float | None = Field(
        description="Randomisation test within blocks, this arm alone; null below 6 boots; secondary."
    )
    dissent: tuple[str, ...] = Field(description="Secondary methods that disagree with the verdict.")
    blocks_needed: int | None = Field(
        description="Blocks that would likely distinguish an effect of the band from none; null: unknown."
    )
    reason: parts.Reason

    @classmethod
    def of(cls, arm: ArmResult) -> Self:
        """One arm."""
        contrast, verdict, other = arm.contrast, arm.verdict, sensitivity(arm)
        inference, rank = contrast.inference, contrast.rank
        return cls.like(
            verdict,
            arm=arm.arm,
            boots=contrast.boots,
            interval_95=verdict.interval,
            interval_90=verdict.equivalence_interval,
            adjusted_p=inference.adjusted_p if inference else None,
            error=inference.basis if inference else None,
            df=inference.df if inference else None,
            rank_ratio=rank.ratio if rank else None,
            rank_interval=rank,
            verdict=verdict.label,
            unseen_share=verdict.unseen,
            noticeable_shift=verdict.noticeable,
            boots_apart=verdict.odd_boots,
            reference_boots_apart=verdict.reference_odd_boots,
            ratio_of_others=verdict.others,
            leave_one_out=other.left_out,
            sign_flip_p=other.sign_flip_p,
            dissent=other.dissent,
            reason=_why(verdict),
        )


def _why(verdict: Verdict) -> str | None:
    """Why a field of an arm is null, if one is."""
    if verdict.left_out:
        return LEFT_OUT
    if verdict.ratio is None:
        return "no block holds this arm and the reference"
    return "too few cells to estimate an error" if verdict.interval is None else None


class SizeArm(parts.Part):
    """An arm at one size; the reference is the first."""

    arm: str
    boots: parts.Count
    median: float | None = Field(description="Median of boot medians, in the analysis' unit.")
    min: float | None
    max: float | None
    difference: float | None = Field(description="(ratio - 1) x the reference's median.")
    median_ms: float | None = Field(description="The same where the unit is ms; else null.")
    min_ms: float | None
    max_ms: float | None
    difference_ms: float | None
    range_coverage: float | None = Field(description="P(the median boot lies in min to max).")
    ratio: float | None
    level: float | None = Field(description="1 - 0.05 / number of sizes.")
    interval: parts.Limits
    equivalence_interval: parts.Limits = Field(description="Used for equivalence at this size.")
    verdict: str
    reason: parts.Reason

    @classmethod
    def of(cls, cell: TableCell, verdict: Verdict | None, analysis: Analysis) -> Self:
        """One cell of the table; `verdict` is None for the reference."""
        in_ms = analysis.measure.unit == "ms"
        return cls.like(
            cell,
            min=cell.low,
            max=cell.high,
            median_ms=cell.median if in_ms else None,
            min_ms=cell.low if in_ms else None,
            max_ms=cell.high if in_ms else None,
            difference_ms=cell.difference if in_ms else None,
            range_coverage=cell.coverage,
            ratio=verdict.ratio if verdict else None,
            level=verdict.level if verdict else None,
            interval=verdict.interval if verdict else None,
            equivalence_interval=verdict.equivalence_interval if verdict else None,
            verdict=verdict.label if verdict else "reference",
            reason=_why_not(cell, verdict, analysis),
        )


def _why_not(cell: TableCell, verdict: Verdict | None, analysis: Analysis) -> str | None:
    """Why a field of a size is null, if one is."""
    if verdict is not None and verdict.left_out:
        return LEFT_OUT
    if not cell.boots:
        return none_valid(analysis.replicate)
    if verdict is None:
        return "the reference arm"
    if verdict.label is Label.TOO_FEW:
        return too_few(verdict)
    unit = analysis.measure.unit
    return None if unit == "ms" else f"the unit is {unit}, not ms"


class SizePart(parts.Part):
    """One size."""

    size: parts.Count = Field(description="In the study's size_word.")
    reference_median: float | None
    reference_median_ms: float | None
    arms: list[SizeArm]

    @classmethod
    def of(cls, row: TableRow, arms: tuple[ArmResult, ...], analysis: Analysis) -> Self:
        """One row of the table, with the verdicts at its size."""
        verdicts, median = {arm.arm: arm.verdict for arm in arms}, row.cells[0].median
        return cls(
            size=row.size,
            reference_median=median,
            reference_median_ms=median if analysis.measure.unit == "ms" else None,
            arms=[SizeArm.of(cell, verdicts.get(cell.arm), analysis) for cell in row.cells],
        )


class MissingCell(parts.Part):
    """A cell without a value."""

    label: str
    block: int
    outcome: str
    reason: str


class AnalysisPart(parts.Part):
    """One VM, form and measure. Only a primary one decides; the others are exploratory."""

    vm: str
    form: str
    metric: Literal["elapsed_ms", "cpu_ms", "client_ms", "value"] = Field(
        description="The column of the raw data that was analysed."
    )
    metric_name: str = Field(description="What it is, as in throughput.")
    unit: str
    better: Literal["lower", "higher"]
    primary: bool
    blocks: parts.Count
    complete_blocks: parts.Count
    blocks_not_begun: parts.Count
    ended_by_rule: str | None = Field(description="The declared rule that ended the blocks.")
    withheld: str | None
    residual_sd: float | None = Field(description="SD of one cell on the ln scale: 0.005 is 0.5%.")
    boot_sd: float | None = Field(
        description="The part between boots: 0 when iterations explain all of it; null: not estimable."
    )
    within_sd: float | None = Field(description="SD of one iteration within its boot and size.")
    boot_share: float | None = Field(description="boot_sd squared / residual_sd squared.")
    df: int
    detectable_effect: parts.Detectable
    arms: list[ArmPart]
    sizes: list[SizePart]
    a_a: parts.AaPart
    positive_control: parts.ControlPart
    drift: parts.DriftPart
    sentinel: parts.DriftPart = Field(description="Drift of a short reference query at each boot.")
    gate: list[parts.GatePart] = Field(description="Empty with a single arm, or fewer than 3 columns.")
    growth: list[parts.GrowthPart] = Field(description="Empty with a single size.")
    odd_cells: list[parts.OddCellPart]
    two_groups: parts.GroupsPart
    missing_cells: list[MissingCell]

    @classmethod
    def of(cls, analysis: Analysis) -> Self:
        """One analysis, unrounded."""
        noise, growth = analysis.noise, analysis.growth
        return cls.like(
            analysis,
            metric_name=analysis.measure.name,
            unit=analysis.measure.unit,
            better=analysis.measure.better,
            ended_by_rule=analysis.ended_by or None,
            residual_sd=noise.cell_sd,
            boot_sd=noise.boot_sd,
            within_sd=noise.within_sd,
            boot_share=noise.boot_share,
            detectable_effect=parts.Detectable.of(analysis.detectable_effect),
            arms=list(map(ArmPart.of, analysis.arms)),
            sizes=[
                SizePart.of(row, size.arms, analysis)
                for row, size in zip(analysis.table, analysis.sizes, strict=True)
            ],
            a_a=parts.AaPart.of(analysis.a_a),
            positive_control=parts.ControlPart.of_check(analysis.positive_control),
            drift=parts.DriftPart.of(analysis.drift),
            sentinel=parts.DriftPart.of(analysis.sentinel),
            gate=list(map(parts.GatePart.like, analysis.gate)),
            growth=list(map(parts.GrowthPart.of, growth)) if isinstance(growth, tuple) else [],
            odd_cells=list(map(parts.OddCellPart.like, analysis.odd_cells)),
            two_groups=parts.GroupsPart.of_check(analysis.bimodality),
            missing_cells=list(map(MissingCell.like, analysis.missing)),
        )
