"""`vnuma schema`: JSON Schemas of the study file and of the results, from the models themselves."""

from __future__ import annotations

from typing import Annotated, Literal

import typer


def schema(
    of: Annotated[
        Literal["study", "results"],
        typer.Argument(help="study: the study file; results: `vnuma results --format json`."),
    ] = "study",
    format_: Annotated[
        Literal["json", "markdown"],
        typer.Option(
            "--format",
            help="json for editors and programs. markdown for people: the fields of a study, the columns of "
            "a run's tables.",
        ),
    ] = "json",
) -> None:
    """Print the JSON Schema of study files or results, or describe a study's fields and a run's columns.

    Examples: vnuma schema > study.schema.json; vnuma schema results; vnuma schema results --format markdown
    """
    if of == "results":
        if format_ == "markdown":
            from vnuma.report.archive.raw import dictionary

            typer.echo(dictionary(), nl=False)
            return
        from vnuma.report.export.results import results_schema

        typer.echo(results_schema(), nl=False)
        return
    from vnuma.domain.study.study_schema import json_schema, markdown

    typer.echo(json_schema() if format_ == "json" else markdown(), nl=False)
