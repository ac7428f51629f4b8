"""What a study's design says that cannot be, although each field alone is right."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.domain.study.order import columns
from vnuma.domain.study.squares import blocks_of_square
from vnuma.domain.study.study import Study
from vnuma.domain.workloads.problem import Problem
from vnuma.domain.workloads.settings import maxdop_of


def check_design(study: Study) -> Iterator[Problem]:
    """Stopping rules that contradict each other, squares that the blocks do not fill, a doubtful control."""
    yield from _check_stopping(study)
    yield from _check_square(study)
    yield from _check_covariate(study)
    yield from _check_control(study)


def _check_stopping(study: Study) -> Iterator[Problem]:
    given = study.design.model_fields_set
    if study.design.precision and "blocks" in given:
        yield Problem(
            ("design", "blocks"),
            "design.blocks and design.precision both set when the study ends.",
            "Keep one. With precision, design.max_blocks limits the number of blocks.",
        )
    if study.design.precision is None and "max_blocks" in given:
        yield Problem(
            ("design", "max_blocks"),
            "design.max_blocks limits design.precision, which is missing.",
            "Set design.blocks instead, or add a precision, as in precision: 1%.",
        )


def _check_square(study: Study) -> Iterator[Problem]:
    """A square that is cut short is not balanced; what a stopping rule cuts later is not foreseen."""
    order, most = study.design.order, study.design.most_blocks
    width = len(columns(study))
    square = blocks_of_square(order, width)
    if most % square == 0:
        return
    field = "max_blocks" if study.design.precision else "blocks"
    wanted = max(1, round(most / square)) * square
    yield Problem(
        ("design", field),
        f"{order} with {width} columns a block (arms, and A/A) is balanced over {square} blocks, not {most}.",
        f"Set design.{field}: {wanted}, or order: randomised.",
    )


def _check_covariate(study: Study) -> Iterator[Problem]:
    """In fixed order place and arm are one; a square has every place as a factor."""
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
    elif maxdop_of(study.workload_of(study.reference)) != 1:
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
