"""Every block of README.md and docs/ is what it says: commands that exist, files that the real loaders read.

A block that cannot be is marked in the line above it: <!-- not run: reason -->
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from vnuma.cli.main import app
from vnuma.cli.manual import entries
from vnuma.domain.study.study_file import parse_study

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
INDENTED = re.compile(r"(?<=\n\n) {4}\S[^\n]*(?:\n(?: {4}[^\n]*)?)*")
STUDY_KEYS = {"arms", "workload", "allowed_hours", "reference", "all_arms", "design"}


@dataclass(frozen=True)
class Block:
    """A fenced or indented block, where it stands, and why it is not looked at."""

    page: Path
    line: int
    kind: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> Iterator[Block]:
    """All of them; an indented one is taken for commands, as its lines that begin with vnuma are."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start("kind")) + 1
            yield Block(page, line, found["kind"], found["text"], found["reason"])
        bare = re.sub(r"^```.*?^```$", lambda one: "\n" * one[0].count("\n"), text, flags=re.M | re.S)
        for found in INDENTED.finditer(bare):
            shown = "\n".join(line.removeprefix("    ") for line in found[0].splitlines())
            yield Block(page, bare.count("\n", 0, found.start()) + 1, "sh", shown, None)


ALL = list(blocks())


def of_kind(*kinds: str) -> list[Any]:
    """Blocks of these kinds that are not marked, each named by its place."""
    return [pytest.param(one, id=str(one)) for one in ALL if one.kind in kinds and not one.reason]


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each call of vnuma: after variables, before a pipe or a file, without a prompt."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|;|\|| [<>] ", line.removeprefix("$ ")):
            words = re.match(r"\s*(?:[A-Z_]+=\S*\s+)*(?:\.venv/bin/)?vnuma (?! )(.*)", part)
            if words:
                yield shlex.split(words[1], comments=True)


def parse(arguments: list[str]) -> None:
    """As the command line does, without running anything. Raises its errors."""
    command: Any = get_command(app)
    context = command.make_context("vnuma", [], resilient_parsing=True)
    while hasattr(command, "commands"):
        name, command, arguments = command.resolve_command(context, arguments)
        context = command.context_class(command, info_name=name, parent=context)
    command.make_context(name, list(arguments), parent=context)


@pytest.mark.parametrize("block", of_kind("sh", "console", "bash"))
def test_commands_are_those_of_the_command_line(block: Block) -> None:
    """An unknown verb or option, or a missing argument, fails with the page and line."""
    for arguments in commands(block.text):
        parse(arguments)


@pytest.mark.parametrize(
    "example",
    [pytest.param(one, id=one) for entry in entries() for one in entry.examples if one.startswith("vnuma ")],
)
def test_examples_of_the_help_are_commands(example: str) -> None:
    """The same for what `vnuma VERB --help` shows, and the page of the command line with it."""
    for arguments in commands(example):
        parse(arguments)


@pytest.mark.parametrize("block", of_kind("json"))
def test_json_is_json(block: Block) -> None:
    """It can be copied into a program."""
    json.loads(block.text)


@pytest.mark.parametrize("block", of_kind("yaml"))
def test_studies_are_read_as_vnuma_reads_them(block: Block) -> None:
    """A whole study, or parts of one put into the quick study; other YAML can be parsed."""
    document = yaml.safe_load(block.text)
    if not STUDY_KEYS & set(document):
        return
    base = yaml.safe_load((ROOT / "studies" / "quick.yml").read_text(encoding="utf-8"))
    base.pop("published")
    if "arms" in document and "reference" not in document:
        base.pop("reference")
    if "workload" in document:
        base.pop("workload")
    parse_study(yaml.safe_dump(base | document), str(block))


def test_every_kind_of_block_is_looked_at() -> None:
    """A block that this file would pass over, it has to name."""
    known = {"sh", "console", "bash", "yaml", "json", "text", "toml", "mermaid", "python"}

    assert [str(one) for one in ALL if one.kind not in known] == []
    assert sum(len(list(commands(one.text))) for one in ALL if one.kind in ("sh", "console")) > 60
