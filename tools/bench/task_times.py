"""Where a cell's time goes: each task of the role `cell`, and what Ansible needs between tasks."""

from __future__ import annotations

import json
from collections import defaultdict
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


def milliseconds(record: Path) -> dict[str, float]:
    """Median milliseconds of each action from its worker's start to its result, and between two actions.

    The last is the sum over a cell of the time in which no action of vnuma's was under way.
    """
    took: dict[str, list[float]] = defaultdict(list)
    cells: list[list[tuple[float, float]]] = []
    began = 0.0
    for line in record.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        action = event["action"].removeprefix(PREFIX)
        if not event["action"].startswith(PREFIX):
            continue
        if event["event"] == "start":
            began = event["at"]
            continue
        took[action].append((event["at"] - began) * 1000)
        if action == "cell_claim":
            cells.append([])
        cells[-1].append((began, event["at"]))
    between = [_idle(cell, following[0][0]) for cell, following in pairwise(cells)]
    found = {action: median(times) for action, times in took.items() if action != "vm_restore"}
    return found | {"between actions": median(between)}


def _idle(cell: list[tuple[float, float]], next_start: float) -> float:
    """Milliseconds of a cell in which no action was under way, up to the next cell's first."""
    return (next_start - cell[0][0] - sum(end - start for start, end in cell)) * 1000
