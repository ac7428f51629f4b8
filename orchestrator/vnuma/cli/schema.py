"""`vnuma schema`: JSON Schemas of the study file and of the results, from the models themselves."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class SchemaFormat(StrEnum):
    """What to print."""

    JSON = "json"
    MARKDOWN = "markdown"


class SchemaOf(StrEnum):
    """The documented model."""

    STUDY = "study"
    RESULTS = "results"


def schema(
    of: Annotated[
        SchemaOf, typer.Argument(help="study: the study file; results: `vnuma results --format json`.")
    ] = SchemaOf.STUDY,
    format_: Annotated[
        SchemaFormat,
        typer.Option(
            "--format",
            help="json for editors and programs. markdown for people: the fields of a study, the columns of "
            "a run's tables.",
        ),
    ] = SchemaFormat.JSON,
) -> None:
    """Print the JSON Schema of study files or results, or describe a study's fields and a run's columns.

    Examples: vnuma schema > study.schema.json; vnuma schema results; vnuma schema results --format markdown
    """
    if of is SchemaOf.RESULTS:
        if format_ is SchemaFormat.MARKDOWN:
            from vnuma.report.archive.raw import dictionary

            typer.echo(dictionary(), nl=False)
            return
        from vnuma.report.export.results import results_schema

        typer.echo(results_schema(), nl=False)
        return
    from vnuma.domain.study.study_schema import json_schema, markdown

    typer.echo(json_schema() if format_ is SchemaFormat.JSON else markdown(), nl=False)
