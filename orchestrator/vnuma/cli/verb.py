"""What every verb of the command line has: options for its output, and its place in the list of verbs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vnuma.cli.screen import MANNER, Colour

_MANNERS: dict[str, tuple[object, object]] = {
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no hints.")],
        False,
    ),
    "verbose": (
        Annotated[bool, typer.Option("--verbose", "-v", help="Show each step, and the cause of an error.")],
        False,
    ),
    "color": (Annotated[Colour, typer.Option("--color", help="When to colour text.")], Colour.AUTO),
}
"""Options that every verb has: their annotation and default."""

COMMON = frozenset(_MANNERS)


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """The function of a verb as the command line calls it: with the options that all verbs have."""
    own = inspect.signature(function, eval_str=True)

    @wraps(function)
    def spoken(*args: object, quiet: bool, verbose: bool, color: Colour, **options: object) -> None:
        MANNER.quiet, MANNER.verbose, MANNER.colour = quiet, verbose, color
        function(*args, **options)

    ours = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _MANNERS.items()
    ]
    whole = own.replace(parameters=[*own.parameters.values(), *ours])
    spoken.__signature__ = whole  # type: ignore[attr-defined]
    spoken.__annotations__ = {name: one.annotation for name, one in whole.parameters.items()}
    return spoken


class Verbs(TyperGroup):
    """The list of verbs, by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel, in the order in which its first verb was added."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, self.commands)) + 2
        for name in self.list_commands(ctx):
            verb = self.get_command(ctx, name)
            if verb is not None and not verb.hidden:
                words = verb.get_short_help_str(formatter.width)
                panel = getattr(verb, "rich_help_panel", None) or "Commands"
                sections.setdefault(str(panel), []).append((name.ljust(width - 2), words))
        for panel, rows in sections.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
