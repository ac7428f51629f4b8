"""Where a cell's time goes: each task of the role `cell`, and what Ansible needs between tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

CALLBACKS = Path(__file__).with_name("callbacks")
PREFIX = "vnuma.vnuma."


def environment(record: Path) -> dict[str, str]:
    """What makes a play write its tasks' times to `record`."""
    return {
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "task_times",
        "ANSIBLE_BENCH_TASK_TIMES": str(record),
    }


def by_cell(record: Path) -> list[dict[str, float]]:
    """For each cell but the last, milliseconds of each action from its worker's start to its result.

    `between actions` is the rest up to the next cell's first: no action of vnuma's was under way.
    """
    cells: list[list[tuple[str, float, float]]] = []
    began = 0.0
    for line in record.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if not event["action"].startswith(PREFIX):
            continue
        action = event["action"].removeprefix(PREFIX)
        if event["event"] == "start":
            began = event["at"]
            continue
        if action == "cell_claim":
            cells.append([])
        cells[-1].append((action, began, event["at"]))
    return [_parts(cell, following[0][1]) for cell, following in pairwise(cells)]


def medians(cells: Sequence[dict[str, float]]) -> dict[str, float]:
    """Part by part over these cells, the largest first."""
    found = {part: median(cell.get(part, 0.0) for cell in cells) for part in cells[0]}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _parts(cell: list[tuple[str, float, float]], next_start: float) -> dict[str, float]:
    took = {action: (end - start) * 1000 for action, start, end in cell}
    return took | {"between actions": (next_start - cell[0][1]) * 1000 - sum(took.values())}
