"""`vnuma power`: how many boots an effect needs, and what a study can and cannot tell."""

from __future__ import annotations

from typing import Annotated

import typer

from vnuma.cli.options import StoreOption, StudyArgument, TextOrJsonOption, run_names
from vnuma.cli.screen import echo_json, say


def power(
    study: StudyArgument,
    effect: Annotated[str, typer.Option(help="The effect to detect, such as 1%.")] = "1%",
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="An earlier run to plan with, or its archive.",
            autocompletion=run_names,
        ),
    ] = None,
    format_: TextOrJsonOption = "text",
    store: StoreOption = None,
) -> None:
    """Show how many boots an effect needs, how long that takes, and what the study can tell.

    It simulates the comparison rule itself, at assumed spreads or at the upper bound of a pilot's.

    Examples: vnuma power studies/dakic2019.yml --effect 0.5%; vnuma power STUDY --pilot quick.1
    """
    from vnuma.cli.power_answer import power_answer

    found = power_answer(study, effect, pilot, store)
    if format_ == "json":
        echo_json(found.document())
    else:
        say(found.text(study))
