"""A part of a target that a restore brings back, and what is known of the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.journal import Journal
from vnuma.engine.lease.foreign_changes import ForeignChange, conflict_words
from vnuma.errors import RestoreConflict

Choice = Literal["refuse", "theirs", "baseline"]
"""For settings that somebody else changed: refuse and touch nothing, keep theirs, or restore them too."""


@dataclass(frozen=True)
class Restored:
    """The result of a restore: `equal` of `settings` read back equal, and what was changed.

    `power` is the power state, None where nothing powers it. `begun`: whether the run had started on it.
    `lab_ended`: it was a VM of a lab that exists no more.
    """

    vm: str
    settings: int
    equal: int
    power: Power | None
    changes: tuple[Edit, ...] = ()
    powered_off: bool = False
    begun: bool = True
    lab_ended: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    @property
    def words(self) -> str:
        """For people: only what was proven."""
        if not self.begun:
            return f"{self.vm}: no change was started there"
        if self.lab_ended:
            return f"{self.vm}: it ended with its lab; nothing is left to restore"
        state = {Power.ON: "powered on", None: "files removed"}.get(self.power, "powered off")
        if not self.settings:
            return f"{self.vm}: the study changes no setting here, {state}"
        return f"{self.vm}: {self.equal} of {self.settings} settings read back equal, {state}"


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would change now, in the same form as the changes it reports."""

    changes: tuple[Edit, ...] = ()
    powered_off: bool = False
    removes_files: bool = False


@dataclass(frozen=True)
class Difference:
    """A setting that differs from the baseline, and who changed it: "us" or "somebody else"."""

    setting: str
    baseline: Value
    now: Value
    by: str


@dataclass(frozen=True)
class HeldLease:
    """The lease of a restore. Its fence refuses work after the token has moved on."""

    fence: Callable[[], None]
    journal: Journal


@dataclass(frozen=True)
class PartRestore(ABC):
    """The restore of one part of a target: its VM, or its guest. `context.vm` is its row in the store."""

    context: VmContext
    choice: Choice
    say: Callable[[str], None]

    @abstractmethod
    def plan(self) -> RestorePlan:
        """What `restore` would change now. Raises RestoreConflict where it would."""

    @abstractmethod
    def differences(self) -> list[Difference]:
        """How the part differs from its baseline now. Changes nothing."""

    @abstractmethod
    def restore(self, held: HeldLease) -> Restored:
        """Lock the target, compare the part with the baseline, write the differences, read them back.

        Raises RestoreConflict before the first change when somebody else changed something and `choice` is
        `refuse`; any VnumaError or OSError when it fails.
        """


def together(parts: Sequence[Restored]) -> Restored:
    """The result of a target, from those of its parts."""
    powers = [part.power for part in parts if part.power is not None]
    return Restored(
        parts[0].vm,
        sum(part.settings for part in parts),
        sum(part.equal for part in parts),
        powers[0] if powers else None,
        tuple(edit for part in parts for edit in part.changes),
        any(part.powered_off for part in parts),
        all(part.begun for part in parts),
        any(part.lab_ended for part in parts),
    )


def kept_settings(
    name: str, foreign: list[ForeignChange], choice: Choice, fix: str | None = None
) -> set[str]:
    """Which settings stay as somebody else changed them: with `theirs` all of them, else none.

    Raises RestoreConflict when there are any and `choice` is `refuse`.
    """
    if foreign and choice == "refuse":
        fix = fix or f"vnuma restore {name} --theirs | --baseline"
        raise RestoreConflict(conflict_words(name, foreign), fix=fix)
    return {item.setting for item in foreign} if choice == "theirs" else set()
