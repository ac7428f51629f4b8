"""`vnuma compare`: two runs of the same study, before and after a change, or on two hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.completion import run_names
from vnuma.cli.options import AllowOption, StoreOption, TableOrJsonOption, opened_store
from vnuma.cli.screen import USUAL, echo, note, say, width, write_out


def compare(
    before: Annotated[
        str,
        typer.Argument(metavar="BEFORE", help="Name of a run, such as quick.4.", autocompletion=run_names),
    ],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="The run to compare it with.", autocompletion=run_names)
    ],
    allow: AllowOption = None,
    vm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BEFORE=AFTER", help="A pair of VMs to compare, one from each run; may be repeated."
        ),
    ] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Exit with code 10 if this is true, such as 'slower>2%' or 'faster>2%'."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML with one test case per arm.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write an HTML page too.")
    ] = None,
    format_: TableOrJsonOption = "table",
    store: StoreOption = None,
) -> None:
    """Show how each topology's gap to the reference changed between two runs, if they are comparable.

    --fail-if is true when the whole 95% interval of a gap lies beyond the limit, and never for an arm without
    a verdict. It does not see a change that affects every topology alike: each run's own figures show that.

    Examples: vnuma compare quick.4 quick.5 -o page.html; vnuma compare quick.4 quick.5 --fail-if 'slower>2%';
    vnuma compare quick.4 other.1 --vm sql16=sql17
    """
    from vnuma.domain.vm.plain_text import listed
    from vnuma.errors import ThresholdMet, UsageError
    from vnuma.report.comparison import text
    from vnuma.report.comparison.pair import compare_runs
    from vnuma.report.comparison.text import parse_condition
    from vnuma.report.model.model import load_run

    condition, twins = parse_condition(fail_if) if fail_if else None, _twins(vm or ())
    if junit and condition is None:
        raise UsageError("--junit reports a condition, so it needs --fail-if.", fix="--fail-if 'slower>2%'")
    opened = opened_store(store)
    found = compare_runs(load_run(opened, before), load_run(opened, after), allow or (), twins)
    if format_ == "json":
        echo(text.as_json(found, condition), nl=False)
    else:
        say(text.as_text(found, condition, min(width() or USUAL, USUAL)).rstrip("\n"))
    if output:
        from vnuma.report.page.comparison_page import write_comparison

        write_comparison(found, condition, output)
        note(f"Page       {output}")
    if condition is None:
        return
    if junit:
        write_out(text.as_junit(found, condition), junit, "The JUnit file", "--junit")
    met = [
        f"{pair.after.name} {change.arm}"
        for pair, change, state in text.states(found, condition)
        if state == "met"
    ]
    if met:
        raise ThresholdMet(f"{condition} is true for {listed(met)}.", fix=f"vnuma report {after}")


def _twins(options: Sequence[str]) -> dict[str, str]:
    """`--vm A=B` as pairs; UsageError for anything else."""
    from vnuma.errors import UsageError

    pairs = dict[str, str]()
    for text in options:
        one, equals, other = text.partition("=")
        if not (one and equals and other) or one in pairs:
            raise UsageError(
                f"'--vm {text}' does not name two different VMs.", fix="Write it as --vm sql16=sql17"
            )
        pairs[one] = other
    return pairs
