"""The run as one JSON document for programs: nothing is rounded, null stands beside a reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from vnuma.analysis.result import Analysis, ArmResult
from vnuma.analysis.sensitivity import sensitivity
from vnuma.analysis.table import TableCell
from vnuma.analysis.verdict import Verdict, Word
from vnuma.analysis.wording import LEFT_OUT, too_few
from vnuma.domain.vm.provenance import in_json
from vnuma.domain.workloads.replicate import none_valid
from vnuma.report.export.json_checks import a_a, control, drift, evidence, limits, or_null
from vnuma.report.model.boot_views import boots_of
from vnuma.report.model.costs import allocation_document
from vnuma.report.model.declared import plan_document
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import scaling_document
from vnuma.report.model.trust import effective_count, repeated
from vnuma.report.published.published_comparison import PublishedRow, published_rows
from vnuma.report.tables.figures import figures_document
from vnuma.report.tables.waits import waits_document
from vnuma.store.rows import Vm

SCHEMA = "vnuma/results/1"


def as_json(loaded: LoadedRun) -> str:
    """One document of the schema `vnuma/results/1`: unrounded, lists, null beside a reason."""
    return json.dumps(document(loaded), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(loaded: LoadedRun) -> dict[str, Any]:
    """The JSON document as a value."""
    run = loaded.run
    primary = loaded.result.primary
    return {
        "schema": SCHEMA,
        **in_json(run.simulated),
        "run": run.name,
        "state": str(run.state),
        "partial": loaded.partial,
        "study": {
            "name": loaded.study.name,
            "title": loaded.study.title,
            "sha256": loaded.study_sha256,
            "reference": loaded.study.reference,
            "blocks": loaded.study.design.most_blocks,
            "precision": loaded.study.design.precision,
            "equivalence": loaded.study.design.equivalence,
            "order": loaded.study.design.order,
            "covariate": loaded.study.design.covariate,
            "seed": run.seed,
            "workload": loaded.study.workload.name,
            "size_word": loaded.result.design.size_word,
        },
        "declared": plan_document(loaded),
        "ticket": run.ticket,
        "product_version": run.product_version,
        "created_at": _time(run.created_at),
        "finished_at": _time(run.finished_at),
        "driver": run.driver,
        "vms": [_vm(loaded, vm) for vm in loaded.vms],
        "arms": [{"vm": a.vm, **_arm(arm)} for a in primary for arm in a.arms],
        "allocation": [allocation_document(loaded, a) for a in primary],
        "recommended": [{"vm": a.vm, "arms": list(a.recommended)} for a in primary],
        "warnings": [
            {"vm": a.vm, "id": item.id, "what": item.what, "advice": item.advice}
            for a in primary
            for item in a.cautions
        ],
        "analyses": [_analysis(analysis) for analysis in loaded.result.analyses],
        "attempts_not_counted": [_attempt(loaded, vm) for vm in loaded.vms],
        "effective": [{"vm": vm.name, "boots": boots_of(loaded, vm)} for vm in loaded.vms],
        "published": _published(loaded),
        "figures": figures_document(loaded),
        "scaling": scaling_document(loaded),
        "waits": waits_document(loaded),
    }


def _published(loaded: LoadedRun) -> dict[str, Any] | None:
    """Somebody else's figures, ours beside them."""
    published = loaded.published
    if published is None:
        return None
    declared = [a for a in loaded.result.analyses if a.measure == loaded.result.design.measure(a.form)]
    return {
        "title": published.title,
        "source": published.source,
        "rows": [
            {"vm": analysis.vm, **_published_row(row)}
            for analysis in declared
            for row in published_rows(analysis, loaded.study)
        ],
    }


def _published_row(row: PublishedRow) -> dict[str, Any]:
    verdict = row.verdict
    return {
        "form": row.form,
        "size": row.size,
        "arm": row.arm,
        "unit": row.unit,
        "published": row.theirs,
        "measured": row.ours,
        "published_ratio": row.their_ratio,
        "published_bound": row.bound,
        "ratio": verdict.ratio if verdict else None,
        "interval": limits(verdict.interval) if verdict else None,
        "prediction_95": limits(verdict.prediction) if verdict else None,
        "published_is": row.where or None,
        "reason": "the reference arm"
        if verdict is None
        else "only a ratio was published"
        if row.theirs is None
        else None
        if row.ours is not None and row.their_ratio is not None
        else f"{none_valid(row.replicate)}, or no published reference",
    }


def _arm(arm: ArmResult) -> dict[str, Any]:
    """All-sizes result of one arm; limits are ratios to the reference."""
    contrast, verdict = arm.contrast, arm.verdict
    inference, rank = contrast.inference, contrast.rank
    other = sensitivity(arm)
    return {
        "arm": arm.arm,
        "boots": contrast.boots,
        "ratio": verdict.ratio,
        "level": verdict.level,
        "interval_95": limits(verdict.interval),
        "interval_90": limits(verdict.equivalence_interval),
        "adjusted_p": inference.adjusted_p if inference else None,
        "error": inference.basis if inference else None,
        "df": inference.df if inference else None,
        "rank_ratio": rank.ratio if rank else None,
        "rank_interval": [rank.low, rank.high] if rank else None,
        "verdict": str(verdict.word),
        "withheld": None if verdict.withheld is None else str(verdict.withheld),
        "provisional": verdict.provisional,
        "detectable": verdict.detectable,
        "unseen_share": verdict.unseen,
        "noticeable_shift": verdict.noticeable,
        "boots_apart": list(verdict.apart),
        "reference_boots_apart": list(verdict.reference_apart),
        "ratio_of_others": verdict.others,
        "beyond_margin": verdict.beyond_margin,
        "rank_supports": verdict.rank_supports,
        "leave_one_out": [other.left_out.low, other.left_out.high] if other.left_out else None,
        "sign_flip_p": other.sign_flip_p,
        "dissent": list(other.dissent),
        "blocks_needed": verdict.blocks_needed,
        "reason": _why(verdict),
    }


def _why(verdict: Verdict) -> str | None:
    """Why a field above is null, if one is."""
    if verdict.left_out:
        return LEFT_OUT
    if verdict.ratio is None:
        return "no block holds this arm and the reference"
    return "too few cells to estimate an error" if verdict.interval is None else None


def _analysis(analysis: Analysis) -> dict[str, Any]:
    noise = analysis.noise
    return {
        "vm": analysis.vm,
        "form": analysis.form,
        "metric": analysis.metric,
        "metric_name": analysis.measure.name,
        "unit": analysis.measure.unit,
        "better": analysis.measure.better,
        "primary": analysis.primary,
        "blocks": analysis.blocks,
        "complete_blocks": analysis.complete_blocks,
        "blocks_not_begun": analysis.blocks_not_begun,
        "ended_by_rule": analysis.ended_by or None,
        "withheld": None if analysis.withheld is None else str(analysis.withheld),
        "residual_sd": noise.cell_sd,
        "boot_sd": noise.boot_sd,
        "within_sd": noise.within_sd,
        "boot_share": noise.boot_share,
        "df": analysis.df,
        "detectable_effect": or_null(analysis.detectable_effect),
        "arms": [_arm(arm) for arm in analysis.arms],
        "sizes": [
            {
                "size": table.size,
                "reference_median": table.cells[0].median,
                "reference_median_ms": table.cells[0].median if analysis.measure.unit == "ms" else None,
                "arms": [_size_arm(cell, arms.get(cell.arm), analysis) for cell in table.cells],
            }
            for table, sizes in zip(analysis.table, analysis.sizes, strict=True)
            for arms in [{arm.arm: arm.verdict for arm in sizes.arms}]
        ],
        "a_a": a_a(analysis.a_a),
        "positive_control": control(analysis.positive_control),
        "drift": drift(analysis.drift),
        "sentinel": drift(analysis.sentinel),
        **evidence(analysis),
        "missing_cells": [
            {"label": item.label, "block": item.block, "outcome": item.outcome, "reason": item.reason}
            for item in analysis.missing
        ],
    }


def _size_arm(cell: TableCell, verdict: Verdict | None, analysis: Analysis) -> dict[str, Any]:
    unit = analysis.measure.unit
    figures = {"median": cell.median, "min": cell.low, "max": cell.high, "difference": cell.difference}
    return {
        "arm": cell.arm,
        "boots": cell.boots,
        **figures,
        **{f"{name}_ms": value if unit == "ms" else None for name, value in figures.items()},
        "range_coverage": cell.coverage,
        "ratio": verdict.ratio if verdict else None,
        "level": verdict.level if verdict else None,
        "interval": limits(verdict.interval) if verdict else None,
        "equivalence_interval": limits(verdict.equivalence_interval) if verdict else None,
        "verdict": str(verdict.word) if verdict else "reference",
        "reason": _why_not(cell, verdict, analysis),
    }


def _why_not(cell: TableCell, verdict: Verdict | None, analysis: Analysis) -> str | None:
    """Why a field of a size is null, if one is."""
    if verdict is not None and verdict.left_out:
        return LEFT_OUT
    if not cell.boots:
        return none_valid(analysis.replicate)
    if verdict is None:
        return "the reference arm"
    if verdict.word is Word.TOO_FEW:
        return too_few(verdict)
    unit = analysis.measure.unit
    return None if unit == "ms" else f"the unit is {unit}, not ms"


def _vm(loaded: LoadedRun, vm: Vm) -> dict[str, Any]:
    effective = effective_count(loaded, vm)
    return {
        "vm": vm.name,
        "path": vm.path,
        "esxi_host": vm.esxi_host,
        "cells": effective.planned,
        "cells_effective_as_intended": effective.as_intended,
        "cells_not_evaluated": effective.unseen,
        "restore": None if vm.restore_outcome is None else str(vm.restore_outcome),
        "restored_at": _time(vm.restored_at),
    }


def _attempt(loaded: LoadedRun, vm: Vm) -> dict[str, Any]:
    return {
        "vm": vm.name,
        "attempts": [
            {
                "block": item.block,
                "label": item.label,
                "arm": item.arm,
                "attempt": item.number,
                "outcome": str(item.outcome),
                "reason": item.reason,
                "detail": item.detail,
                "cell_measured_by_another": repeated(loaded, item),
            }
            for item in loaded.not_counted(vm)
        ],
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
