"""The blocks of README.md and docs/: fenced ones, and indented ones, which are commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
INDENTED = re.compile(r"(?<=\n\n) {4}\S[^\n]*(?:\n(?: {4}[^\n]*)?)*")


@dataclass(frozen=True)
class Block:
    """A fenced or indented block, its place, and why it is not checked."""

    page: Path
    line: int
    kind: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> Iterator[Block]:
    """All blocks; an indented one counts as commands, as far as its lines begin with vnuma."""
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


def is_scenario(block: Block) -> bool:
    """Whether it is a scenario of the lab: the YAML of its page."""
    return block.kind == "yaml" and block.page.name == "lab.md"
