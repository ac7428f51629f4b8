"""Contradictions between a study's fields: design, workload and arms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from vnuma.domain.study.order import blocks_of_square, columns
from vnuma.domain.study.study import Study
from vnuma.domain.workloads.settings import Path, Problem
from vnuma.words.validation import message


def check_design(study: Study) -> Iterator[Problem]:
    """Contradictory stopping rules, incomplete squares, a doubtful control."""
    yield from _check_stopping(study)
    yield from _check_square(study)
    yield from _check_covariate(study)
    yield from _check_control(study)


def _check_stopping(study: Study) -> Iterator[Problem]:
    design, given = study.design, study.design.model_fields_set
    rule = "stop: decided" if design.stop == "decided" else "precision"
    if design.may_end_early and "blocks" in given:
        yield Problem(
            ("design", "blocks"),
            f"design.blocks and {rule} both set when the study ends.",
            f"Keep one. With {rule}, design.max_blocks limits the number of blocks.",
        )
    if not design.may_end_early and "max_blocks" in given:
        yield Problem(
            ("design", "max_blocks"),
            "design.max_blocks limits a study that may end early, and this one has a fixed end.",
            "Set design.blocks instead, or add stop: decided.",
        )
    if design.stop == "decided":
        yield from _check_decided(study)


_FEWEST_TO_DECIDE = 6


def _check_decided(study: Study) -> Iterator[Problem]:
    """Arms that leave need whole random blocks, and nothing else that ends the study by its intervals."""
    if study.design.precision is not None:
        yield Problem(
            ("design", "precision"),
            "design.precision and stop: decided both end the study by its intervals.",
            "Keep one. With stop: decided each arm leaves as soon as it has a verdict.",
        )
    if study.design.order != "randomised":
        yield Problem(
            ("design", "stop"),
            f"stop: decided is for randomised order, not {study.design.order}: arms leave, so that later "
            "blocks have fewer.",
            "Set order: randomised, or design.blocks instead of stop.",
        )
    if study.design.max_blocks < _FEWEST_TO_DECIDE:
        yield Problem(
            ("design", "max_blocks"),
            f"design.max_blocks: {study.design.max_blocks} ends the study before block {_FEWEST_TO_DECIDE}, "
            "the first after which an arm may be called equivalent.",
            f"Set max_blocks: {_FEWEST_TO_DECIDE} or more; vnuma power STUDY advises a number.",
        )


def _check_square(study: Study) -> Iterator[Problem]:
    """A truncated square is not balanced; truncation by a stopping rule is not predicted here."""
    order, most = study.design.order, study.design.most_blocks
    width = len(columns(study))
    square = blocks_of_square(order, width)
    if most % square == 0:
        return
    field = "max_blocks" if study.design.may_end_early else "blocks"
    wanted = max(1, round(most / square)) * square
    yield Problem(
        ("design", field),
        f"{order} with {width} columns a block (arms, and A/A) is balanced over {square} blocks, not {most}.",
        f"Set design.{field}: {wanted}, or order: randomised.",
    )


def _check_covariate(study: Study) -> Iterator[Problem]:
    """In fixed order place and arm are confounded; a square has every place as a factor."""
    if study.design.covariate != "none" and study.design.order != "randomised":
        yield Problem(
            ("design", "covariate"),
            f"covariate: {study.design.covariate} is for randomised order, not {study.design.order}.",
            "Remove covariate, or set order: randomised.",
        )


def _check_control(study: Study) -> Iterator[Problem]:
    if study.control_arm is None:
        return
    if not study.workload.offers_control:
        yield Problem(
            ("design", "control"),
            f"the workload {study.workload.name} has no positive control inside the guest.",
            "Set control: none.",
        )
    elif study.workload_of(study.reference).maxdop_hint != 1:
        yield Problem(
            ("design", "control"),
            (
                "the positive control limits SQL Server to one node's CPUs: a parallel plan would also "
                "lose workers."
            ),
            "Set maxdop: 1 for the reference arm, or control: none.",
        )
    if study.control_arm in study.labels:
        yield Problem(
            ("design", "control"),
            f"the positive control is called '{study.control_arm}', but an arm has the same name.",
            "Rename that arm.",
        )


def check_workload(study: Study) -> Iterator[Problem]:
    """Repeated sizes and forms, arms that differ in fixed fields, and the workload's own rules."""
    named: tuple[tuple[Path, Sequence[object]], ...] = (
        (("vms",), study.vms),
        (("workload", "sizes"), study.workload.sizes),
        (("workload", "forms"), study.workload.forms),
    )
    for path, values in named:
        for index, value in enumerate(values):
            if value in values[:index]:
                yield Problem((*path, index), f"{value} is listed twice.", "Remove one.")
    yield from _published_figures(study)
    yield from study.workload.problems(study.workload_context)


def _published_figures(study: Study) -> Iterator[Problem]:
    """Published ratios of figures that this workload does not have, so that nothing could be compared."""
    known = [figure.name for figure in study.workload.figures]
    for form, ratios in (study.published.figure_ratios if study.published else {}).items():
        for name in ratios:
            if name not in known:
                yield Problem(
                    ("published", "figure_ratios", form, name),
                    f"the workload {study.workload.name} has no figure '{name}' besides its metric.",
                    f"It tells {', '.join(known) or 'none'}.",
                )


def check_arms_workloads(study: Study) -> Iterator[Problem]:
    """Workload fields in arms: known, variable, and with a valid value."""
    workload = study.workload
    factors = ", ".join(sorted(workload.factors)) or "none"
    for index, arm in enumerate(study.arms):
        if arm.maxdop != "keep" and "maxdop" not in type(workload).model_fields:
            yield Problem(
                ("arms", index, "maxdop"),
                f"the workload {workload.name} has no MAXDOP hint.",
                "Remove maxdop from its arms.",
            )
        strangers = [field for field in arm.workload if field not in workload.factors]
        for field in strangers:
            yield Problem(
                ("arms", index, "workload", field),
                f"'{field}' of the workload {workload.name} cannot differ between arms.",
                f"These can: {factors}.",
            )
        if not strangers:
            yield from _misfits(study, index, arm.workload)


def _misfits(study: Study, index: int, own: Mapping[str, object]) -> Iterator[Problem]:
    try:
        type(study.workload).model_validate({**study.workload.model_dump(), **own})
    except ValidationError as error:
        for item in error.errors():
            yield Problem(
                ("arms", index, "workload", *item["loc"]),
                f"workload.{'.'.join(map(str, item['loc']))}: {message(item)}.",
                "",
            )
