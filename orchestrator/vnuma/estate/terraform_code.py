"""Find a resource in the .tf files next to a plan, whose JSON does not name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from vnuma.domain.vm.estate import Declared
from vnuma.estate.design_vm import MARK, accepted_in, block_end, mapping, relative_to_here

_MOST_FILES = 500
_MOST_BYTES = 1_000_000
_RESOURCE = re.compile(r'^[ \t]*resource[ \t]+"([\w-]{1,200})"[ \t]+"([\w-]{1,200})"', re.M)
_BLOCK = re.compile(r"^(resource|data|module|variable|output|locals|provider|terraform|moved|import|check)\b")
_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')


class Code:
    """The configuration next to a plan: its folder, and modules in folders below."""

    def __init__(self, folder: Path, root: Mapping[str, Any]) -> None:
        self._folder, self._root = folder, root
        self._lines = cache(_resources_in)

    def declared(self, address: str) -> Declared | None:
        """File and line of the resource at this address; None if no .tf file here has it."""
        found = self._find(address)
        return Declared(relative_to_here(found[0], self._folder), found[1]) if found else None

    def accepted(self, address: str) -> tuple[str, ...]:
        """The accepted findings in the resource's block, and in the comments just above it."""
        found = self._find(address)
        lines = _text(found[0]).splitlines() if found else []
        if not found or not any(MARK in line for line in lines):
            return ()
        later = range(found[1] + 1, len(lines) + 1)
        following = next((number for number in later if _BLOCK.match(lines[number - 1])), 0)
        return accepted_in(lines, found[1], block_end(lines, following))

    def _find(self, address: str) -> tuple[Path, int] | None:
        parts = _INDEX.sub("", address).split(".")
        try:
            folder = self._module(parts[1:-2:2])
            return self._lines(folder).get((parts[-2], parts[-1])) if folder else None
        except (IndexError, OSError, RuntimeError, ValueError):  # no address, or no path (pathlib's three)
            return None

    def _module(self, calls: list[str]) -> Path | None:
        """The folder of a module; None unless it is below the plan."""
        folder, module = self._folder, self._root
        for call in calls:
            found = mapping(mapping(module.get("module_calls")).get(call))
            source = found.get("source")
            if not isinstance(source, str) or not source.startswith("./"):
                return None
            folder, module = folder / source, mapping(found.get("module"))
        inside = folder.resolve().is_relative_to(self._folder.resolve())
        return self._folder / folder.resolve().relative_to(self._folder.resolve()) if inside else None


@lru_cache(maxsize=8)
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _resources_in(folder: Path) -> dict[tuple[str, str], tuple[Path, int]]:
    """Each resource of a folder's .tf files, with file and line. An unreadable file has none."""
    found: dict[tuple[str, str], tuple[Path, int]] = {}
    for file in sorted(folder.glob("*.tf"))[:_MOST_FILES]:
        try:
            if not file.is_file() or file.stat().st_size > _MOST_BYTES:
                continue
            text = _text(file)
        except OSError:
            continue  # the findings have no line then, as for modules elsewhere
        for match in _RESOURCE.finditer(text):
            found.setdefault((match[1], match[2]), (file, text.count("\n", 0, match.start(1)) + 1))
    return found
