"""The restore of a Linux machine: reset its kernel settings, remove the study's files."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.vm.change import Edit
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.instance import kernel
from vnuma.engine.instance.kernel import kernel_baseline
from vnuma.engine.restore.restore import (
    Difference,
    HeldLease,
    Restoration,
    Restored,
    RestorePlan,
    kept_settings,
)
from vnuma.store.rows import RestoreOutcome
from vnuma.workloads.interface import machine_workload_named
from vnuma.workloads.shell import Shell


@dataclass(frozen=True, kw_only=True)
class MachineRestoration(Restoration):
    """The restore of a Linux machine through a root shell."""

    shell: Shell

    def plan(self) -> RestorePlan:
        """See `Restoration`. Files are removed as well, whatever the settings are."""
        return RestorePlan(tuple(self._edits().values()), removes_files=True)

    def differences(self) -> list[Difference]:
        """See `Restoration`. Settings with the study's values count as ours."""
        before, held = kernel_baseline(self.vm), self.study.workload.kernel_settings()
        now = kernel.read(self.shell, before)
        return [
            Difference(kernel.key(name), value, now.get(name), by)
            for name, value in before.items()
            for by in ["us" if name in held and now.get(name) == held[name] else "somebody else"]
            if now.get(name) != value
        ]

    def keeps_database(self) -> bool:
        """See `Restoration`. A machine has files, which are removed."""
        return False

    def _restore(self, held: HeldLease) -> Restored:
        """Remove files first: they fill the machine's memory, whatever happens to its settings."""
        with vm_lock(self.home, self.vm.vm_key, self.vm.name, say=self.say):
            held.fence()
            if self.vm.baseline is None:
                return Restored(self.vm.name, 0, 0, None, begun=False)
            machine_workload_named(self.study.workload.name).remove(self.shell, self.study.workload)
            edits = self._edits()
            kernel.switch(
                self.shell,
                {name: str(edit.after) for name, edit in edits.items()},
                {name: str(edit.before) for name, edit in edits.items()},
                held.journal,
            )
            before = self._baseline()
            now = kernel.read(self.shell, before) if before else {}
        equal = sum(now.get(name) == value for name, value in before.items())
        return Restored(self.vm.name, len(before), equal, None, tuple(edits.values()))

    def _settled(self, done: Restored) -> RestoreOutcome:
        theirs = self.choice == "theirs" and done.equal < done.settings
        return RestoreOutcome.THEIRS if theirs else RestoreOutcome.RESTORED

    def _baseline(self) -> dict[str, str]:
        """The values before the run of those settings that the study holds during a pass."""
        held = self.study.workload.kernel_settings()
        return {name: value for name, value in kernel_baseline(self.vm).items() if name in held}

    def _edits(self) -> dict[str, Edit]:
        """The edits that reset them, by setting.

        Raises RestoreConflict when somebody else changed one and `choice` is `refuse`; `theirs` keeps it.
        """
        if self.vm.baseline is None:
            return {}
        before = self._baseline()
        now = kernel.read(self.shell, before) if before else {}
        foreign = kernel.foreign_changes(before, self.study.workload.kernel_settings(), now)
        theirs = kept_settings(self.vm.name, foreign, self.choice)
        return {
            name: Edit(kernel.key(name), now.get(name), value)
            for name, value in before.items()
            if now.get(name) != value and kernel.key(name) not in theirs
        }
