"""The published samples that the parsers are held to."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "data" / "logs"


@cache
def samples(file: str) -> list[Any]:
    """Every sample of one file in `tests/data/logs`, as parameters with their ids."""
    loaded: list[Any] = yaml.load((FOLDER / file).read_text(encoding="utf-8"), yaml.CSafeLoader)
    return loaded


def every_text() -> list[str]:
    """The text of every sample but the timing messages."""
    files = ("vmware_log.yml", "host_tools.yml", "guest_tools.yml", "sql_errorlog.yml")
    return [sample["text"] for file in files for sample in samples(file)]
