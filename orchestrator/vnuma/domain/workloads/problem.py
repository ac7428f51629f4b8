"""What is wrong in a study file."""

from __future__ import annotations

from dataclasses import dataclass

Path = tuple[int | str, ...]


@dataclass(frozen=True)
class Problem:
    """One problem in a file: where (keys from the top), what, and the correct form."""

    path: Path
    what: str
    fix: str = ""
