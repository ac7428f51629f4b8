"""A workload's own evidence about each boot, shown as stored."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Outcome, Vm
from vnuma.words.plain_text import counted

SCOPE = "workload"
LONGEST = 160
"""Longer texts are folded."""


@dataclass(frozen=True)
class Verified:
    """One key: each distinct value with its boots, as in "12 boots of 1x16, 2x8"."""

    key: str
    values: tuple[tuple[str, str], ...]

    @property
    def folded(self) -> bool:
        """Whether it is long, or differs from boot to boot."""
        return len(self.values) > 1 or any(len(text) > LONGEST for _, text in self.values)


def verified(loaded: LoadedRun, vm: Vm) -> list[Verified]:
    """Every fact that the workload stored with this VM's valid boots."""
    arms = {attempt.id: attempt.arm for attempt in loaded.attempts_of(vm, Outcome.VALID)}
    boots: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact in loaded.facts:
        if fact.scope == SCOPE and fact.vm_id == vm.id and fact.attempt_id in arms:
            boots[fact.key][_text(fact.value)].append(arms[fact.attempt_id])
    replicate = loaded.result.design.replicate
    return [
        Verified(
            key,
            tuple(
                (f"{counted(len(mine), replicate)} of {', '.join(dict.fromkeys(mine))}", text)
                for text, mine in values.items()
            ),
        )
        for key, values in sorted(boots.items())
    ]


def _text(value: object) -> str:
    """A document as "name: value; name: value", with nested parts as JSON."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
