"""`vnuma check --record` and `--history`: an estate over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from vnuma.cli.options import opened_store
from vnuma.cli.screen import echo, say
from vnuma.domain.vm.provenance import banner

if TYPE_CHECKING:
    from vnuma.checks.result import CheckResult


def recorded(result: CheckResult, store: str | None) -> CheckResult:
    """The recorded result, each finding marked as new or unchanged since the previous check."""
    from vnuma.engine.design_check.check import compare
    from vnuma.engine.design_check.history import record

    before = record(opened_store(store), result)
    return compare(result, before) if before else result


def show(store: str | None, since: str | None, *, as_json: bool) -> None:
    """Print the recorded checks: which findings are new, gone or unchanged, and for how long."""
    from vnuma.engine.design_check.history import history
    from vnuma.report.check import as_history

    found = history(opened_store(store, create=False), _time(since) if since else None)
    if as_json:
        echo(as_history.as_json(found), nl=False)
        return
    told = ""
    for one in found:
        if one.simulated and one.simulated != told:
            told = one.simulated
            echo(banner(told))
        for line in as_history.lines(one):
            say(line)


def _time(text: str) -> datetime:
    """A day or a time; UTC without a zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--since {text} is not a date. Write it as 2026-11-01.") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
