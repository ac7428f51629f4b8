"""The published schema of the results document: every key of `json_export`, described.

Within `vnuma/results/1` keys are added, never redefined, so a reader must accept keys it does not know.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, Field

from vnuma.report.export.boot_views_schema import EffectivePart
from vnuma.report.export.published_comparison_schema import (
    FigurePart,
    PublishedFigures,
    ScalingPart,
    WaitsPart,
)
from vnuma.report.export.schema_types import Count, Limits, Reason, Utc


class StudyPart(BaseModel):
    """The study as it was run."""

    name: str
    title: str | None
    sha256: str = Field(description="Of the study file's text.")
    reference: str = Field(description="The arm that others are compared with.")
    blocks: Count = Field(description="Most blocks that may be run.")
    precision: float | None = Field(
        description="Half-width to stop at, as a ratio minus 1; null: fixed blocks."
    )
    equivalence: float = Field(description="Band of equivalence as a ratio minus 1.")
    order: str = Field(description="Order of arms within blocks.")
    covariate: Literal["none", "place"] = Field(description="place: a linear covariate, declared.")
    seed: int = Field(description="Gives the order of cells.")
    workload: str
    size_word: str = Field(description="What a size counts.")


class DeclaredPart(BaseModel):
    """The plan that was stored before the first boot: study, method and stopping rule."""

    sha256: str | None = Field(description="Of the plan's canonical JSON; null: none was stored.")
    as_declared: bool | None
    differs: list[str] = Field(description="What is not as declared.")
    earlier_runs: list[str] = Field(description="Runs of the study that the store held when it was declared.")
    reason: Reason


class VmPart(BaseModel):
    """A VM of the run."""

    vm: str
    path: str
    esxi_host: str
    cells: Count = Field(description="Planned.")
    cells_effective_as_intended: Count = Field(description="Guest and SQL Server saw the arm's topology.")
    cells_not_evaluated: Count
    restore: str | None = Field(description="How putting the VM back ended; null: not yet.")
    restored_at: Utc


class ArmPart(BaseModel):
    """An arm against the reference, over all sizes. Ratios: figure of the arm / figure of the reference."""

    arm: str
    boots: Count = Field(description="Blocks that hold the arm and the reference: n.")
    ratio: float | None = Field(description="Above 1 is slower; faster where higher is better.")
    level: float = Field(description="Simultaneous level of interval_95 over all arms, as a share.")
    interval_95: Limits
    interval_90: Limits = Field(description="Decides equivalence.")
    adjusted_p: float | None = Field(description="Below 0.05 exactly when interval_95 excludes 1.")
    error: Literal["pooled", "own"] | None = Field(description="What the interval rests on.")
    df: float | None
    rank_ratio: float | None = Field(description="Hodges-Lehmann; shown, never decides.")
    rank_interval: Limits
    verdict: Literal["slower", "faster", "equivalent", "undecided", "too few boots"]
    withheld: str | None = Field(description="Why the verdict's word may not be used.")
    provisional: bool
    detectable: bool = Field(description="Equivalent, yet interval_95 excludes 1.")
    unseen_share: float | None = Field(
        description="Beside equivalent: the largest share of boots that may be `noticeable_shift` away."
    )
    noticeable_shift: float | None = Field(description="From there on a boot stands apart: 0.03 is 3%.")
    boots_apart: list[float] = Field(
        description="The arm's boots that stand apart beyond the band, as ratios."
    )
    reference_boots_apart: list[float] = Field(description="The same of the reference.")
    ratio_of_others: float | None = Field(description="The ratio in blocks without any of those boots.")
    beyond_margin: bool = Field(description="The whole interval lies beyond the equivalence band.")
    rank_supports: bool | None
    leave_one_out: Limits = Field(
        description="Range of the ratio, each pair left out once; shown, never decides."
    )
    sign_flip_p: float | None = Field(
        description="Randomisation test within blocks, this arm alone; null below 6 boots; never decides."
    )
    dissent: list[str] = Field(description="Methods that do not decide and disagree with the verdict.")
    blocks_needed: int | None = Field(
        description="Blocks that would likely tell an effect of the band from none; null: none can be named."
    )
    reason: Reason


class PrimaryArm(ArmPart):
    """An arm of a VM's deciding analysis."""

    vm: str


class SizeArm(BaseModel):
    """An arm at one size; the reference is the first."""

    arm: str
    boots: Count
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
    interval: Limits
    equivalence_interval: Limits = Field(description="Decides equivalence at this size.")
    verdict: str
    reason: Reason


class SizePart(BaseModel):
    """One size."""

    size: Count = Field(description="In the study's size_word.")
    reference_median: float | None
    reference_median_ms: float | None
    arms: list[SizeArm]


class Detectable(BaseModel):
    """The difference that this many blocks likely (80%) detect at the upper bound of the SD: 0.01 is 1%."""

    value: float | None
    reason: Reason


class AaPart(BaseModel):
    """The reference against itself."""

    state: Literal["alarm", "note", "no alarm"] | None
    reason: Reason
    ratio: float | None = None
    interval_95: Limits = None
    p: float | None = None
    noise_floor: float | None = Field(None, description="95% half-width as a ratio minus 1.")


class ControlPart(BaseModel):
    """The positive control: an arm whose effect is known."""

    passed: bool | None
    reason: Reason
    arm: str | None = None
    expected: Literal["slower", "faster"] | None = None


class SlopePart(BaseModel):
    """A trend of ln(figure)."""

    slope: float | None = Field(description="Per block, or per place within a block: 0.001 is 0.1%.")
    reason: Reason
    p: float | None = None
    alarm: bool | None = None


class DriftPart(BaseModel):
    """Did time itself leave a trace?"""

    between_blocks: SlopePart | None
    within_blocks: SlopePart | None
    reason: Reason = None


class GatePart(BaseModel):
    """The variance gate of one column."""

    label: str
    f: float | None = Field(description="null: nothing to divide by.")
    critical: float | None
    flagged: bool = Field(description="True: intervals that it touches rest on their own error.")


class GrowthPart(BaseModel):
    """How an arm's gap changes as the work doubles, in percentage points."""

    arm: str
    points: float | None
    interval_95: Limits
    adjusted_p: float | None
    trend: str
    withheld: str | None


class OddCellPart(BaseModel):
    """A cell far from what its column and block say; kept. ln scale."""

    label: str
    block: int
    residual: float
    limit: float
    shift: float


class GroupsPart(BaseModel):
    """Whether residuals fall into two groups."""

    share: float | None
    critical: float | None
    flagged: bool | None
    reason: Reason


class MissingCell(BaseModel):
    """A cell without a value."""

    label: str
    block: int
    outcome: str
    reason: str


class AnalysisPart(BaseModel):
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
    blocks: Count
    complete_blocks: Count
    blocks_not_begun: Count
    ended_by_rule: str | None = Field(description="The declared rule that ended the blocks.")
    withheld: str | None
    residual_sd: float | None = Field(description="SD of one cell on the ln scale: 0.005 is 0.5%.")
    boot_sd: float | None = Field(
        description="Of it, between boots: 0 when iterations explain all of it; null: not estimable."
    )
    within_sd: float | None = Field(description="SD of one iteration within its boot and size.")
    boot_share: float | None = Field(description="boot_sd squared / residual_sd squared.")
    df: int
    detectable_effect: Detectable
    arms: list[ArmPart]
    sizes: list[SizePart]
    a_a: AaPart
    positive_control: ControlPart
    drift: DriftPart
    sentinel: DriftPart = Field(description="Drift of a short reference query at each boot.")
    gate: list[GatePart] = Field(description="Empty with a single arm, or fewer than 3 columns.")
    growth: list[GrowthPart] = Field(description="Empty with a single size.")
    odd_cells: list[OddCellPart]
    two_groups: GroupsPart
    missing_cells: list[MissingCell]


class AttemptPart(BaseModel):
    """An attempt that did not count."""

    block: int
    label: str
    arm: str
    attempt: int
    outcome: str | None
    reason: str | None
    detail: str | None
    cell_measured_by_another: bool


class Attempts(BaseModel):
    """Attempts that did not count, of one VM."""

    vm: str
    attempts: list[AttemptPart]


class WarningPart(BaseModel):
    """A typed warning with its next step."""

    vm: str
    id: str = Field(description="Stable, for scripts.")
    what: str
    advice: str


class AllocationChoice(BaseModel):
    """Iterations a boot, and the blocks that they need."""

    iterations: Count
    blocks: Count
    hours: float = Field(description="On one VM, by what cells took in this run.")


class AllocationPart(BaseModel):
    """Boots or iterations for the next run of a VM, cheapest first: planned on the spread's upper bound."""

    vm: str
    half_width: float | None = Field(
        description="That all 95% half-widths likely (80%) keep: the precision, else the band; ratio minus 1."
    )
    choices: list[AllocationChoice]
    reason: Reason = None


class Recommended(BaseModel):
    """Arms that may be recommended for a VM: fastest, or equivalent to it. May be empty."""

    vm: str
    arms: list[str]


class Results(BaseModel):
    """What `vnuma results --format json` prints: nothing is rounded, null stands beside a reason."""

    schema_: Literal["vnuma/results/1"] = Field(alias="schema")
    simulated: bool = Field(description="True: from the lab's cost model, not measured on hardware.")
    scenario: str | None = Field(description="The lab's scenario.")
    run: str
    state: str
    partial: bool = Field(description="True: the run is still going and figures will change.")
    study: StudyPart
    declared: DeclaredPart
    ticket: str | None = Field(description="Change ticket of a run on production VMs.")
    product_version: str
    created_at: Utc
    finished_at: Utc
    driver: dict[str, Any] | None = Field(description="The ODBC driver.")
    vms: list[VmPart]
    arms: list[PrimaryArm]
    allocation: list[AllocationPart]
    recommended: list[Recommended]
    warnings: list[WarningPart]
    analyses: list[AnalysisPart]
    attempts_not_counted: list[Attempts]
    effective: list[EffectivePart] = Field(description="What each boot really had, from every side.")
    published: PublishedFigures | None = Field(description="null: the study carries none.")
    figures: list[FigurePart]
    scaling: list[ScalingPart]
    waits: list[WaitsPart]


def results_schema() -> str:
    """The JSON Schema as text."""
    schema = Results.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "vnuma results, version 1"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
