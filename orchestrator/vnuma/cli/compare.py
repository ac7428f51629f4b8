"""`vnuma compare`: two runs before and after a change, or three and more over hosts and builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vnuma.cli.options import AllowOption, StoreOption, TableOrJsonOption, opened_run, run_names
from vnuma.cli.screen import USUAL, echo, note, say, width
from vnuma.errors import ThresholdMet, UsageError
from vnuma.words.plain_text import listed


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Two runs, before and after; or three or more. A run, or its archive RUN.vnuma.zip.",
            autocompletion=run_names,
        ),
    ],
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN",
            help="Of three runs or more, one after the change; may be repeated. The others were before it.",
            autocompletion=run_names,
        ),
    ] = None,
    allow: AllowOption = None,
    vm: Annotated[
        list[str] | None,
        typer.Option(metavar="BEFORE=AFTER", help="A pair of VMs to compare; may be repeated."),
    ] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with code 10 if this is true of a change, such as 'slower>2%' or 'faster>2%'.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write an HTML page too."),
    ] = None,
    format_: TableOrJsonOption = "table",
    store: StoreOption = None,
) -> None:
    """Compare runs of one study: two show what changed, three or more show what holds for all of them.

    Two runs: how each topology's gap to the reference changed. --fail-if is true when the whole 95% interval
    of a gap lies beyond the limit, and never for an arm without a verdict. It does not see a change that
    affects every topology alike: each run's own figures show that. With --after, runs on one side show how
    much a topology scatters from run to run without a change, which two runs cannot.

    Three runs or more, on any hosts: each arm's mean difference, how well the runs agree, and the range for
    one more run. A VM of a run counts once. Runs without verdicts are left out and named.

    Examples: vnuma compare quick.4 quick.5 -o page.html; vnuma compare quick.4 quick.5 --fail-if 'slower>2%';
    vnuma compare quick.4 other.1 --vm sql16=sql17; vnuma compare quick.4.vnuma.zip quick.5;
    vnuma compare quick.4 quick.5 quick.6 --after quick.6;
    vnuma compare a.1 b.1 c.1 --allow sql_server.version
    """
    from vnuma.report.comparison import several_runs
    from vnuma.report.model.model import load_run

    if len(runs) < 2:
        raise UsageError("A comparison needs two runs or more.", fix="vnuma status lists the runs.")
    sides = _sides(runs, after)
    if sides:
        _change(*sides, allow or (), _twins(vm or ()), fail_if, output, format_, store)
        return
    for option, value in (("--vm", vm), ("--fail-if", fail_if), ("--output", output)):
        if value:
            raise UsageError(
                f"{option} is only for a change, and {len(runs)} runs are named.",
                fix="Name two runs, or say with --after which were after the change.",
            )
    found = several_runs.pool_runs([load_run(*opened_run(name, store)) for name in runs], allow or ())
    if format_ == "json":
        echo(several_runs.as_json(found), nl=False)
    else:
        say(several_runs.as_text(found).rstrip("\n"))


def _sides(runs: Sequence[str], after: Sequence[str] | None) -> tuple[Sequence[str], Sequence[str]] | None:
    """The runs before and after a change; None where three or more are summarised."""
    if not after:
        return (runs[:1], runs[1:]) if len(runs) == 2 else None
    strangers = [name for name in after if name not in runs]
    before = [name for name in runs if name not in after]
    if strangers or not before:
        raise UsageError(
            f"--after {', '.join(strangers or after)}: name some of the runs that are compared, not all.",
            fix="As in: vnuma compare quick.1 quick.2 quick.3 --after quick.3",
        )
    return before, after


def _change(
    before: Sequence[str],
    after: Sequence[str],
    allowed: Sequence[str],
    twins: Mapping[str, str],
    fail_if: str | None,
    output: Path | None,
    format_: str,
    store: str | None,
) -> None:
    from vnuma.report.comparison import two_runs
    from vnuma.report.comparison.two_runs import compare_runs
    from vnuma.report.model.model import load_run

    condition = two_runs.parse_condition(fail_if) if fail_if else None
    one, other = ([load_run(*opened_run(name, store)) for name in names] for names in (before, after))
    found = compare_runs(one, other, allowed, twins)
    if format_ == "json":
        echo(two_runs.as_json(found, condition), nl=False)
    else:
        say(two_runs.as_text(found, condition, min(width() or USUAL, USUAL)).rstrip("\n"))
    if output:
        from vnuma.report.page.comparison_page import write_comparison

        write_comparison(found, condition, output)
        note(f"Page       {output}")
    if condition is None:
        return
    met = [
        f"{pair.after.name} {change.arm}"
        for pair, change, state in two_runs.states(found, condition)
        if state == "met"
    ]
    if met:
        raise ThresholdMet(f"{condition} is true for {listed(met)}.", fix=f"vnuma report {after[0]}")


def _twins(options: Sequence[str]) -> dict[str, str]:
    """`--vm A=B` as pairs; UsageError for anything else."""
    pairs = dict[str, str]()
    for text in options:
        one, equals, other = text.partition("=")
        if not (one and equals and other) or one in pairs:
            raise UsageError(
                f"'--vm {text}' does not name two different VMs.", fix="Write it as --vm sql16=sql17"
            )
        pairs[one] = other
    return pairs
