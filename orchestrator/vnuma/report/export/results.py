"""The results document, schema `vnuma/results/1`: unrounded, with a reason for each null.

Within `vnuma/results/1` keys are added, never redefined, so a reader must accept unknown keys.
"""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from pydantic import Field

from vnuma.analysis.result import Analysis
from vnuma.report.export.analyses import AnalysisPart, ArmPart
from vnuma.report.export.boots import EffectivePart
from vnuma.report.export.other_figures import FigurePart, PublishedFigures, ScalingPart, WaitsPart
from vnuma.report.export.parts import Count, Part, Reason, Utc
from vnuma.report.model.methods import cheapest
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import curves
from vnuma.report.model.trust import effective_count, plan_check, repeated
from vnuma.store.rows import Attempt, Vm
from vnuma.words.provenance import in_json


class StudyPart(Part):
    """The study as it was run."""

    name: str
    title: str | None
    sha256: str = Field(description="Of the study file's text.")
    reference: str = Field(description="The arm that others are compared with.")
    blocks: Count = Field(description="Most blocks that may be run.")
    stop: Literal["blocks", "decided"] = Field(description="decided: arms leave when they have a verdict.")
    precision: float | None = Field(description="Half-width to stop at, as a ratio minus 1; null: none.")
    equivalence: float = Field(description="Band of equivalence as a ratio minus 1.")
    order: str = Field(description="Order of arms within blocks.")
    covariate: Literal["none", "place"] = Field(description="place: a linear covariate, declared.")
    seed: int = Field(description="Gives the order of cells.")
    workload: str
    size_word: str = Field(description="What a size counts.")

    @classmethod
    def of(cls, loaded: LoadedRun) -> Self:
        """The run's study."""
        study, design = loaded.study, loaded.study.design
        return cls.like(
            design,
            name=study.name,
            title=study.title,
            sha256=loaded.study_sha256,
            reference=study.reference,
            blocks=design.most_blocks,
            seed=loaded.run.seed,
            workload=study.workload.name,
            size_word=loaded.result.design.size_word,
        )


class DeclaredPart(Part):
    """The plan that was stored before the first boot: study, method and stopping rule."""

    sha256: str | None = Field(description="Of the plan's canonical JSON; null: none was stored.")
    as_declared: bool | None
    differs: tuple[str, ...] = Field(description="Deviations from the declaration.")
    earlier_runs: tuple[str, ...] = Field(
        description="Runs of the study that the store held when it was declared."
    )
    reason: Reason

    @classmethod
    def of(cls, loaded: LoadedRun) -> Self:
        """The stored plan, and what differs from it."""
        found = plan_check(loaded)
        return cls.like(
            found,
            as_declared=None if found.sha256 is None else not found.differs,
            reason=None if found.sha256 else found.words,
        )


class VmPart(Part):
    """A VM of the run."""

    vm: str
    path: str
    esxi_host: str
    cells: Count = Field(description="Planned.")
    cells_effective_as_intended: Count = Field(description="Guest and SQL Server saw the arm's topology.")
    cells_not_evaluated: Count
    restore: str | None = Field(description="How the VM's restore ended; null: not yet.")
    restored_at: Utc

    @classmethod
    def of(cls, loaded: LoadedRun, vm: Vm) -> Self:
        """One VM, or one machine."""
        effective = effective_count(loaded, vm)
        return cls.like(
            vm,
            vm=vm.name,
            cells=len(loaded.cells_of(vm)),
            cells_effective_as_intended=effective.as_intended,
            cells_not_evaluated=effective.unseen,
            restore=vm.restore_outcome,
        )


class _OfVm(Part):
    """A part whose first key is its VM."""

    vm: str


class PrimaryArm(ArmPart, _OfVm):
    """An arm of a VM's deciding analysis."""


class AttemptPart(Part):
    """An attempt that did not count."""

    block: int
    label: str
    arm: str
    attempt: int
    outcome: str | None
    reason: str | None
    detail: str | None
    cell_measured_by_another: bool

    @classmethod
    def of(cls, loaded: LoadedRun, attempt: Attempt) -> Self:
        """One attempt."""
        measured = repeated(loaded, attempt)
        return cls.like(attempt, attempt=attempt.number, cell_measured_by_another=measured)


class Attempts(Part):
    """Attempts that did not count, of one VM."""

    vm: str
    attempts: list[AttemptPart]


class WarningPart(Part):
    """A typed warning with its next step."""

    vm: str
    id: str = Field(description="Stable, for scripts.")
    what: str
    advice: str


class AllocationChoice(Part):
    """Iterations a boot, and the blocks that they need."""

    iterations: Count
    blocks: Count
    hours: float = Field(description="On one VM, by what cells took in this run.")


class AllocationPart(Part):
    """Boots or iterations for the next run of a VM, cheapest first: planned on the spread's upper bound."""

    vm: str
    half_width: float | None = Field(
        description="Likely (80%) limit of all 95% half-widths: the precision, else the band; ratio minus 1."
    )
    choices: list[AllocationChoice]
    reason: Reason = None

    @classmethod
    def of(cls, loaded: LoadedRun, analysis: Analysis) -> Self:
        """Based on this run's figures."""
        plans = cheapest(loaded, analysis)
        if plans is None:
            why = "the spread could not be split, or no cell's time is known"
            return cls(vm=analysis.vm, half_width=None, choices=[], reason=why)
        choices = list(map(AllocationChoice.like, plans.choices))
        return cls(vm=analysis.vm, half_width=plans.width, choices=choices, reason=None)


class Recommended(Part):
    """Arms to use for a VM: less than the band behind the best, else the fastest. May be empty."""

    vm: str
    arms: tuple[str, ...]


class Results(Part):
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
    effective: list[EffectivePart] = Field(description="What each boot really had, from every source.")
    published: PublishedFigures | None = Field(description="null: the study has none.")
    figures: list[FigurePart]
    scaling: list[ScalingPart]
    waits: list[WaitsPart]

    @classmethod
    def of(cls, loaded: LoadedRun) -> Self:
        """The whole document of a run."""
        run, primary = loaded.run, loaded.result.primary
        return cls.like(
            run,
            schema="vnuma/results/1",
            **in_json(run.simulated),
            run=run.name,
            partial=loaded.partial,
            study=StudyPart.of(loaded),
            declared=DeclaredPart.of(loaded),
            vms=[VmPart.of(loaded, vm) for vm in loaded.vms],
            arms=[PrimaryArm(vm=a.vm, **dict(ArmPart.of(arm))) for a in primary for arm in a.arms],
            allocation=[AllocationPart.of(loaded, a) for a in primary],
            recommended=[Recommended(vm=a.vm, arms=a.recommended) for a in primary],
            warnings=[WarningPart.like(item, vm=a.vm) for a in primary for item in a.cautions],
            analyses=list(map(AnalysisPart.of, loaded.result.analyses)),
            attempts_not_counted=[
                Attempts(vm=vm.name, attempts=[AttemptPart.of(loaded, one) for one in loaded.not_counted(vm)])
                for vm in loaded.vms
            ],
            effective=[EffectivePart.of(loaded, vm) for vm in loaded.vms],
            published=PublishedFigures.of(loaded),
            figures=[FigurePart.of(row, loaded) for row in loaded.result.figures],
            scaling=[ScalingPart.of(vm, curve) for vm in loaded.study.vms for curve in curves(loaded, vm)],
            waits=list(map(WaitsPart.of, (*loaded.waits, *loaded.waits_by_arm))),
        )


def document(loaded: LoadedRun) -> dict[str, Any]:
    """The document as JSON values; an absent optional key is left out."""
    return Results.of(loaded).model_dump(mode="json", by_alias=True, exclude_unset=True)


def as_json(loaded: LoadedRun) -> str:
    """The document as text."""
    return json.dumps(document(loaded), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def results_schema() -> str:
    """The JSON Schema as text."""
    schema = Results.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "vnuma results, version 1"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
