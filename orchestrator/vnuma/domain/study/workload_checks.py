"""What a study says of its workload that cannot be: what arms set differently, repeats, its own rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from vnuma.domain.study.study import Study
from vnuma.domain.vm.validation import message
from vnuma.domain.workloads.problem import Path, Problem


def check_workload(study: Study) -> Iterator[Problem]:
    """Repeated sizes and forms, arms that differ in what cannot differ, and the workload's own rules."""
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
    """Published ratios of figures that this workload does not tell: nothing would stand beside them."""
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
    """Fields of the workload that an arm sets: known, allowed to differ, and of a value that fits."""
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
