"""The restore of what a study left in a guest that it reached by a shell: files, and kernel settings."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.vm.change import Edit
from vnuma.engine.access.guest_shell import answering
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.cell.shell_guest import proven_guest
from vnuma.engine.instance import kernel
from vnuma.engine.instance.kernel import kernel_baseline
from vnuma.engine.restore.part import (
    Difference,
    HeldLease,
    PartRestore,
    Restored,
    RestorePlan,
    kept_settings,
)
from vnuma.workloads.interface import workload_named
from vnuma.workloads.shell import Shell


@dataclass(frozen=True)
class GuestRestoration(PartRestore):
    """The restore through a root shell. A boot resets kernel settings, so a shaped VM has none to restore."""

    bios_uuid: str | None
    """The UUID of the VM whose guest it must be, which is booting; None where nothing boots it."""

    def plan(self) -> RestorePlan:
        """See `PartRestore`. Files are removed as well, whatever the settings are."""
        return RestorePlan(tuple(self._edits().values()), removes_files=True)

    def differences(self) -> list[Difference]:
        """See `PartRestore`. Settings with the study's values count as ours."""
        before, held = kernel_baseline(self.context.vm), self.context.study.workload.kernel_settings()
        now = self._now(before)
        return [
            Difference(kernel.key(name), value, now.get(name), by)
            for name, value in before.items()
            for by in ["us" if name in held and now.get(name) == held[name] else "somebody else"]
            if now.get(name) != value
        ]

    def restore(self, held: HeldLease) -> Restored:
        """Remove files first: they fill the guest's memory, whatever happens to its settings."""
        context, vm = self.context, self.context.vm
        with vm_lock(context.home, vm.vm_key, vm.name, say=self.say):
            held.fence()
            if vm.baseline is None:
                return Restored(vm.name, 0, 0, None, begun=False)
            workload = context.study.workload
            workload_named(workload.name).remove(self._proven(), workload)
            edits = self._edits()
            kernel.switch(
                self.context.shell(),
                {name: str(edit.after) for name, edit in edits.items()},
                {name: str(edit.before) for name, edit in edits.items()},
                held.journal,
            )
            before = self._baseline()
            now = self._now(before)
        equal = sum(now.get(name) == value for name, value in before.items())
        return Restored(vm.name, len(before), equal, None, tuple(edits.values()))

    def _proven(self) -> Shell:
        """The shell, once the guest answers. Raises WrongServer for another machine's."""
        context, shell = self.context, self.context.shell()
        if self.bios_uuid is not None:
            shell = answering(shell, context.study.power.sql_timeout_s)
        proven_guest(context.vm, shell, self.bios_uuid)
        return shell

    def _now(self, names: dict[str, str]) -> dict[str, str]:
        return kernel.read(self.context.shell(), names) if names else {}

    def _baseline(self) -> dict[str, str]:
        """The values before the run of those settings that the study holds during a pass."""
        held = self.context.study.workload.kernel_settings()
        return {name: value for name, value in kernel_baseline(self.context.vm).items() if name in held}

    def _edits(self) -> dict[str, Edit]:
        """The edits that reset them, by setting.

        Raises RestoreConflict when somebody else changed one and `choice` is `refuse`; `theirs` keeps it.
        """
        if self.context.vm.baseline is None:
            return {}
        before = self._baseline()
        now = self._now(before)
        foreign = kernel.foreign_changes(before, self.context.study.workload.kernel_settings(), now)
        theirs = kept_settings(self.context.vm.name, foreign, self.choice)
        return {
            name: Edit(kernel.key(name), now.get(name), value)
            for name, value in before.items()
            if now.get(name) != value and kernel.key(name) not in theirs
        }
