"""Decide to which settings a VM is restored, and whether this run may do it."""

from __future__ import annotations

from vnuma.domain.vm.change import Change, Edit, change_back
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Settings, Value, is_evidence
from vnuma.engine.lease.baseline_document import baseline_settings
from vnuma.engine.lease.foreign_changes import conflicts, written
from vnuma.engine.lease.run_mark import foreign_mark
from vnuma.engine.restore.restore import Restoration, kept_settings
from vnuma.errors import RestoreConflict
from vnuma.store import attempts
from vnuma.store.rows import Run
from vnuma.vsphere import run_mark


def settings_to_restore(asked: Restoration, facts: VmFacts) -> dict[str, Value]:
    """The settings to restore: the baseline's, or with `theirs` those that somebody else changed.

    Raises RestoreConflict when somebody else changed some and `choice` is `refuse`.
    """
    baseline = baseline_settings(asked.vm)
    foreign = conflicts(baseline, _written(asked), facts.settings)
    kept = kept_settings(asked.vm.name, foreign, asked.choice)
    # As written: 0 where vSphere chooses a number, which the VM's settings show too.
    return baseline | {item.setting: item.now for item in foreign if item.setting in kept}


def change_to_restore(asked: Restoration, facts: VmFacts, settings: Settings) -> Change:
    """The change that brings the VM to these settings.

    `settings` has no keys that typed fields own. Such a key is reset to the baseline's value if it still has
    the value that this run wrote.
    """
    baseline = baseline_settings(asked.vm)
    stored = tuple(
        Edit(key, facts.settings[key], baseline.get(key))
        for key, values in sorted(_written(asked).items())
        if is_evidence(key) and facts.settings.get(key) in values - {None, baseline.get(key)}
    )
    return Change((*change_back(facts.settings, settings), *stored))


def held_by_another_run(asked: Restoration, facts: VmFacts) -> bool:
    """Whether another run has marked the VM and this one has not changed it, so that nothing needs restoring.

    Raises RestoreConflict when this run has changed it too.
    """
    vm, mark = asked.vm, foreign_mark(facts.lease, asked.run)
    if mark is None:
        return False
    if vm.at_baseline or not _written(asked):
        return True
    raise RestoreConflict(
        f"{vm.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}. "
        "Nothing was changed now.",
        fix=f"Let that run restore it, then: vnuma restore {vm.name}",
    )


def unmarking(run: Run) -> Edit:
    return Edit(run_mark.LEASE_KEY, run.name, None)


def _written(asked: Restoration) -> dict[str, set[Value]]:
    with asked.store.read() as connection:
        return written(attempts.changes_of_vm(connection, asked.vm.id))
