"""Somebody else's change to a VM under study: seen in every cell, and the VM's cells end there."""

from __future__ import annotations

from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.foreign_changes import ForeignChange, conflict_words, conflicts, written
from vnuma.store import attempts
from vnuma.vsphere.apply import ChangedMeanwhile


class SomebodysChange(ChangedMeanwhile):
    """A setting is neither the baseline's nor one that this run has written."""

    reason = "changed_by_somebody"
    outcome = "invalid"


def refuse_foreign_changes(context: VmContext, vm: VmFacts) -> None:
    """Refuse to go on with a VM that somebody else has changed since the study began.

    What is there now is neither overwritten nor measured. Raises SomebodysChange with the three values
    of each setting.
    """
    with context.store.read() as connection:
        ours = written(attempts.changes_of_vm(connection, context.vm.id))
    refuse_settings(vm.name, conflicts(baseline_settings(context.vm), ours, vm.settings))


def refuse_settings(name: str, foreign: list[ForeignChange]) -> None:
    """Refuse a VM or machine with settings that somebody else has changed. Raises SomebodysChange."""
    if foreign:
        raise SomebodysChange(
            conflict_words(name, foreign),
            fix=f"Its cells end here. Choose: vnuma restore {name} --theirs | --baseline",
        )
