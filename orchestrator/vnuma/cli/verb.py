"""What every verb has: options for its output, and its place in the list of verbs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from vnuma.cli.screen import MANNER, Colour

_MANNERS: dict[str, tuple[object, object]] = {
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no hints.")], False),
    "verbose": (
        Annotated[bool, typer.Option("--verbose", "-v", help="Show each step, and the cause of an error.")],
        False,
    ),
    "color": (Annotated[Colour, typer.Option("--color", help="When to colour text.")], "auto"),
}
"""The options that every verb has, with annotation and default."""

COMMON = frozenset(_MANNERS)

_WHOLE = 1000
"""Characters of a verb's line in a list: it wraps, and is not cut."""


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """A verb's function for the command line, with the common options added.

    A parameter whose type is a dataclass becomes one option per field.
    """
    own = inspect.signature(function, eval_str=True).parameters.values()
    together: dict[str, Any] = {one.name: one.annotation for one in own if is_dataclass(one.annotation)}

    @wraps(function)
    def spoken(*args: object, quiet: bool, verbose: bool, color: Colour, **options: Any) -> None:
        MANNER.quiet, MANNER.verbose, MANNER.colour = quiet, verbose, color
        MANNER.store = options.get("store")
        for name, made in together.items():
            options[name] = made(**{field.name: options.pop(field.name) for field in fields(made)})
        function(*args, **options)

    whole = inspect.Signature([*_expanded(own), *(_option(name, *one) for name, one in _MANNERS.items())])
    spoken.__signature__ = whole  # type: ignore[attr-defined]
    spoken.__annotations__ = {name: one.annotation for name, one in whole.parameters.items()}
    return spoken


def group(words: str) -> typer.Typer:
    """A group of verbs, whose help is shown where none of them is named."""
    return typer.Typer(help=words, no_args_is_help=True, rich_markup_mode=None)


def subcommand(of: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a function to a group of verbs, under its own name."""

    def added(function: Callable[..., None]) -> Callable[..., None]:
        return of.command(cls=Verb)(verb(function))

    return added


def _expanded(own: Iterable[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    for one in own:
        if not is_dataclass(one.annotation):
            yield one
            continue
        hints = get_type_hints(one.annotation, include_extras=True)
        for field in fields(one.annotation):
            yield _option(field.name, hints[field.name], field.default)


def _option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_METAVARS: Mapping[str, str] = {
    **dict.fromkeys(("int", "float"), "NUMBER"),
    **dict.fromkeys(("str", "list[str]"), "TEXT"),
    **dict.fromkeys(("Path", "list[Path]"), "PATH"),
}
"""What an option or argument without a word of its own takes."""


def _no_type(ctx: Any) -> str:
    """In place of an argument's type, which its word and its help say better."""
    return ""


class Verb(TyperCommand):
    """A verb, whose help has each example as a command to copy, and words for what an option takes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        params: list[Any] = self.params  # Typer's own, which have more than Click's
        for one in params:
            one.metavar = one.metavar or _METAVARS.get(one.bare_type())
            if one.param_type_name == "argument" and not one.type_descriptor.is_choice:
                one.display_type_rich = _no_type

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description, then the examples: a long one continues after a backslash."""
        words, _, examples = (self.help or "").partition("Examples: ")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(words.strip())
        if not examples:
            return
        with formatter.section("Examples"):
            room = formatter.width - formatter.current_indent - 2
            for example in " ".join(examples.split()).split("; "):
                parts = textwrap.wrap(
                    example, room, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
                )
                formatter.write(textwrap.indent(" \\\n".join(parts), " " * formatter.current_indent) + "\n")


class Verbs(TyperGroup):
    """The list of verbs, grouped by purpose."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each panel, in the order in which its first verb was added."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, self.commands)) + 2
        for name in self.list_commands(ctx):
            verb = self.get_command(ctx, name)
            if verb is not None and not verb.hidden:
                words = verb.get_short_help_str(_WHOLE)
                panel = getattr(verb, "rich_help_panel", None) or "Commands"
                sections.setdefault(str(panel), []).append((name.ljust(width - 2), words))
        for panel, rows in sections.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


_HELP = (["-h"], ["--help"])


class ShowsByDefault(Verbs):
    """Verbs of which `show` is meant where none is named: `vnuma audit quick.4`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Arguments without a verb, except for help, belong to `show`."""
        return super().parse_args(ctx, args if args[:1] in _HELP else self._named(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        return super().resolve_command(ctx, self._named(args))

    def _named(self, args: list[str]) -> list[str]:
        return args if args and args[0] in self.commands else ["show", *args]
