"""`vnuma schema`: the study file's JSON Schema and its documentation, from the model itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class SchemaFormat(StrEnum):
    """What to print."""

    JSON = "json"
    MARKDOWN = "markdown"


def schema(
    format_: Annotated[
        SchemaFormat, typer.Option("--format", help="json for editors, markdown for people.")
    ] = SchemaFormat.JSON,
) -> None:
    """Print the JSON Schema of study files, or the documentation of every field.

    Examples: vnuma schema > study.schema.json; vnuma schema --format markdown
    """
    from vnuma.domain.study_schema import json_schema, markdown

    typer.echo(json_schema() if format_ is SchemaFormat.JSON else markdown(), nl=False)
