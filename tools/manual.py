"""The command line as a page of Markdown, made from the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from vnuma.cli.main import app
from vnuma.cli.verb import COMMON


@dataclass(frozen=True)
class Entry:
    """A command: its words, what follows them, what it does, examples, and its own arguments and options."""

    words: str
    usage: str
    text: tuple[str, ...]
    examples: tuple[str, ...]
    options: tuple[tuple[str, str], ...]


def entries() -> Iterator[Entry]:
    """Every command in the order of `vnuma --help`; those of a group stand in its place."""
    root = get_command(app)
    yield from _entries(root, _context(root, "vnuma", None))


def _context(command: Any, name: str, parent: Any) -> Any:
    """As the command line makes it, without parsing anything."""
    return command.context_class(command, info_name=name, parent=parent)


def _entries(group: Any, context: Any) -> Iterator[Entry]:
    for name, command in group.commands.items():
        inner = _context(command, name, context)
        if hasattr(command, "commands"):
            yield from _entries(command, inner)
        elif not command.hidden:
            yield _entry(command, inner)


def _entry(command: Any, context: Any) -> Entry:
    text, _, examples = re.sub(r"\s+(?=Examples: )", "\n\n", command.help or "").partition("Examples: ")
    records = (one.get_help_record(context) for one in command.params if one.name not in COMMON)
    return Entry(
        words=context.command_path,
        usage=" ".join(command.collect_usage_pieces(context)),
        text=tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip()),
        examples=tuple(" ".join(example.split()) for example in examples.split(";") if example.strip()),
        options=tuple((record[0], record[1]) for record in records if record and "--help" not in record[0]),
    )


def common_options() -> tuple[tuple[str, str], ...]:
    """What every command takes."""
    root = get_command(app)
    context = _context(root, "vnuma", None)
    params = next(iter(root.commands.values())).params  # type: ignore[attr-defined]
    found = (one.get_help_record(context) for one in params if one.name in COMMON)
    return (*((one[0], one[1]) for one in found if one), ("-h, --help", "Show help and exit."))


def markdown() -> str:
    """The page."""
    parts = ["# Command line", "Made from the commands themselves: what `vnuma VERB --help` says.\n"]
    parts += _options_in_markdown("Every command takes these options:", common_options())
    for entry in entries():
        parts += [
            f"## {entry.words}\n",
            f"    {entry.words} {entry.usage}\n",
            *(f"{one}\n" for one in entry.text),
        ]
        parts += _options_in_markdown("", entry.options)
        if entry.examples:
            parts.append("Examples:\n\n" + "\n".join(f"    {one}" for one in entry.examples) + "\n")
    return "\n".join(parts)


def _options_in_markdown(head: str, options: tuple[tuple[str, str], ...]) -> list[str]:
    if not options:
        return []
    rows = [f"| `{name}` | {words.replace('|', chr(92) + '|')} |" for name, words in options]
    return [*([f"{head}\n"] if head else []), "| option | meaning |", "|--|--|", *rows, ""]
