"""The command line as documents: a man page, and Markdown. Both are made from the commands.

python -m tools.manual 2026-11-25 > vnuma.1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from vnuma import __version__
from vnuma.cli.main import EXIT_CODES, app
from vnuma.cli.verb import COMMON

ENVIRONMENT = {
    "VNUMA_HOME": "Folder of the store and the audit log (~/.local/state/vnuma).",
    "VNUMA_AUDIT_SYSLOG": "A syslog collector for the audit log's lines, such as tls://HOST:6514.",
    "VNUMA_STORE": "The store, as --store names it.",
    "VNUMA_INVENTORY": "The inventory, as --inventory names it.",
    "VNUMA_SERVE_TOKEN": "The token of vnuma serve.",
    "NO_COLOR": "Without colour, as --color never.",
}


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
    """The same as one page of Markdown."""
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


def man_page(date: str) -> str:
    """`vnuma.1`, in the macros of man(7)."""
    lines = [
        f'.TH VNUMA 1 "{date}" "vnuma {__version__}" "User Commands"',
        ".SH NAME",
        "vnuma \\- which virtual NUMA topology should this SQL Server VM have, and how sure are we?",
        ".SH SYNOPSIS",
        ".B vnuma",
        "COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH OPTIONS",
        "Every command takes:",
        *_options_in_roff(common_options()),
        ".SH COMMANDS",
    ]
    for entry in entries():
        lines += [f".SS {_roff(entry.words)} {_roff(entry.usage)}", *_paragraphs(entry.text)]
        lines += _options_in_roff(entry.options)
        if entry.examples:
            lines += [".PP", "Examples:", ".nf", *(f"    {_roff(one)}" for one in entry.examples), ".fi"]
    lines += [".SH EXIT STATUS", *_paragraphs((EXIT_CODES.replace("\n", " "),))]
    lines += [".SH ENVIRONMENT", *_options_in_roff(tuple(ENVIRONMENT.items()))]
    return "\n".join(lines) + "\n"


def _paragraphs(texts: tuple[str, ...]) -> list[str]:
    return [line for text in texts for line in (".PP", _roff(text))][1:]


def _options_in_roff(options: tuple[tuple[str, str], ...]) -> list[str]:
    return [line for name, words in options for line in (".TP", f".B {_roff(name)}", _roff(words))]


def _roff(text: str) -> str:
    """The text as a line that no macro is read in, with hyphens that can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    sys.stdout.write(man_page(sys.argv[1]))
