"""`vnuma check`: the design rules."""

from __future__ import annotations

from typing import Annotated

import typer


def check(
    explain: Annotated[
        str,
        typer.Option(
            "--explain",
            metavar="RULE",
            help="What a rule looks at, why, and the fix; `all` lists the rules, `markdown` is their page.",
        ),
    ],
) -> None:
    """Explain a design rule: what it looks at, why it matters, what helps, and who says so.

    Examples: vnuma check --explain T14; vnuma check --explain all
    """
    from vnuma.checks.explain import as_markdown
    from vnuma.checks.explain import explain as explanation

    if explain.strip().lower() == "markdown":
        typer.echo(as_markdown(), nl=False)
    else:
        typer.echo(explanation(explain))
