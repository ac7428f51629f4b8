"""Detect changes by others to a VM under study, in every cell; they end the VM's cells."""

from __future__ import annotations

from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.foreign_changes import ForeignChange, conflict_words, conflicts, written
from vnuma.store import attempts
from vnuma.vsphere.apply import ChangedMeanwhile


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
