"""Compare baseline, this run's writes and present values to find changes by others: they end cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from vnuma.domain.vm.change import change_back, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import WRITTEN_BY_ESXI, Settings, Value
from vnuma.engine.access.context import VmContext
from vnuma.engine.lease.baseline_document import baseline_settings
from vnuma.store import attempts
from vnuma.vsphere.apply import ChangedMeanwhile
from vnuma.words.plain_text import aligned


@dataclass(frozen=True)
class ForeignChange:
    """A setting that somebody else changed: before the study, as we set it, and now."""

    setting: str
    baseline: Value
    ours: Value
    now: Value


def written(changes: Iterable[list[dict[str, Any]]]) -> dict[str, set[Value]]:
    """Every value that a run's attempts wrote, by setting; values that they found may be anybody's."""
    values: dict[str, set[Value]] = {}
    for change in changes:
        for edit in change:
            value = edit["after"]
            values.setdefault(edit["setting"], set()).add(tuple(value) if isinstance(value, list) else value)
    return values


def conflicts(baseline: Settings, ours: Mapping[str, set[Value]], now: Settings) -> list[ForeignChange]:
    """Settings whose present value is neither the baseline's nor one that this run wrote."""
    found = []
    for edit in change_back(now, baseline):
        name = edit.setting
        values = ours.get(name, set())
        if name.lower() in WRITTEN_BY_ESXI or any(
            not change_back({name: value}, {name: edit.before}) for value in values
        ):
            continue
        if name == "memoryReservation" and "memoryReservationLockedToMax" in ours:
            continue  # vSphere moves the reservation with the lock
        found.append(ForeignChange(name, edit.after, max(values, key=str, default=None), edit.before))
    return found


_shown = partial(value_words, unset="none")


def conflict_words(vm: str, foreign: list[ForeignChange]) -> str:
    """The three-way difference as a text table."""
    rows = [("setting", "baseline", "we set", "now")]
    rows += [(item.setting, _shown(item.baseline), _shown(item.ours), _shown(item.now)) for item in foreign]
    said = f"{vm} was changed by somebody else since the study began. Nothing was changed now."
    return "\n".join([said, *aligned(rows)])


class SomebodysChange(ChangedMeanwhile):
    """A setting has neither the baseline's value nor one that this run wrote."""

    reason = "changed_by_somebody"
    outcome = "invalid"


def refuse_foreign_changes(context: VmContext, vm: VmFacts) -> None:
    """Refuse to continue with a VM that somebody else has changed during the study.

    Its present values are neither overwritten nor measured. Raises SomebodysChange with each setting's three
    values.
    """
    changes = context.store.ask(lambda connection: attempts.changes_of_vm(connection, context.vm.id))
    refuse_settings(vm.name, conflicts(baseline_settings(context.vm), written(changes), vm.settings))


def refuse_settings(name: str, foreign: list[ForeignChange]) -> None:
    """Raise SomebodysChange for settings that somebody else has changed."""
    if foreign:
        raise SomebodysChange(
            conflict_words(name, foreign),
            fix=f"Its cells end here. Choose: vnuma restore {name} --theirs | --baseline",
        )
