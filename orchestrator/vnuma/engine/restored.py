"""What came of putting a VM or a machine back."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.domain.change import Edit
from vnuma.domain.setting import Power
from vnuma.errors import NotAtBaseline, VnumaError, of_system


@dataclass(frozen=True)
class Restored:
    """How a VM was put back: `equal` of `settings` read back equal, its power state, and what was changed.

    `power` is None for a machine, which stays on.
    """

    vm: str
    settings: int
    equal: int
    power: Power | None
    changes: tuple[Edit, ...] = ()
    powered_off: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything was changed."""
        return bool(self.changes)

    @property
    def words(self) -> str:
        """For people: what was proven, not what was hoped."""
        state = {Power.ON: "powered on", None: "files removed"}.get(self.power, "powered off")
        if not self.settings:
            return f"{self.vm}: no setting was the study's to change, {state}"
        return f"{self.vm}: {self.equal} of {self.settings} settings read back equal, {state}"


def may_be_away(name: str, error: Exception) -> NotAtBaseline:
    """The error for what could not be put back, or not be proven to be. A bug stays with it."""
    known = of_system(error) if isinstance(error, OSError) else error
    why = known.what if isinstance(known, VnumaError) else f"{type(error).__name__}: {error}"
    away = NotAtBaseline(
        f"{name} may not be at its baseline: {why}", fix=f"Put it right, then: vnuma restore {name}"
    )
    away.bug = None if isinstance(known, VnumaError) else error
    return away
