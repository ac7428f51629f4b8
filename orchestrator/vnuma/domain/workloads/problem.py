"""What is wrong in a study file."""

from __future__ import annotations

from dataclasses import dataclass

Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file: where (keys from the top), what, and what would be right."""

    path: Path
    what: str
    fix: str = ""
