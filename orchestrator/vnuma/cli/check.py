"""`vnuma check`: the design rules, over one VM, a study or a whole estate; and its notifications."""

from __future__ import annotations

import typer

from vnuma.cli.check_options import CheckFormat, CheckOptions
from vnuma.cli.screen import echo_json, width
from vnuma.errors import InputError, UsageError


def check(given: CheckOptions) -> None:
    """Check VMs, hosts and clusters against the design rules. Nothing is changed.

    Examples: vnuma check --all --name 'sql-*'; vnuma check export.xlsx -o check.html;
    vnuma check --vm sql16 --sql --fail-on block; vnuma check plan.json --host-nodes 2x16/256@8.0;
    vnuma check --vm sql16 --fix-as govc; vnuma check --explain T14; vnuma check --explain all --format json
    """
    if given.explain is not None:
        _explain(given.explain, given.format_)
        return
    from vnuma.cli.check_estates import check_estates, show_history

    if given.history:
        show_history(given)
    else:
        check_estates(given)


def _explain(rule: str, format_: CheckFormat) -> None:
    from vnuma.checks.rules.catalogue import WIDTH as EXPLAINED_WIDTH
    from vnuma.checks.rules.catalogue import document
    from vnuma.checks.rules.catalogue import explain as explanation

    if format_ not in ("table", "json"):
        raise typer.BadParameter("--explain is available as table or json.")
    try:
        if format_ == "json":
            echo_json(document(rule))
        else:
            typer.echo(explanation(rule, min(EXPLAINED_WIDTH, width() or EXPLAINED_WIDTH)))
    except InputError as error:
        raise UsageError(error.what, fix=error.fix) from error
