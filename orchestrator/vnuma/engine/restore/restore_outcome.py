"""What came of putting a VM or a machine back, and how the store learns of it, if it can be written."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power
from vnuma.engine.lease.context import holder
from vnuma.errors import NotAtBaseline, StoreError, VnumaError, of_system
from vnuma.store import cells, leases, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RestoreOutcome


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


def possibly_changed(name: str, error: Exception) -> NotAtBaseline:
    """The error for what could not be put back, or not be proven to be. A bug stays with it."""
    known = of_system(error) if isinstance(error, OSError) else error
    why = known.what if isinstance(known, VnumaError) else f"{type(error).__name__}: {error}"
    away = NotAtBaseline(
        f"{name} may not be at its baseline: {why}", fix=f"Put it right, then: vnuma restore {name}"
    )
    away.bug = None if isinstance(known, VnumaError) else error
    return away


def advance_token(store: Store, run: Run, vm: Vm) -> tuple[int, StoreError | None]:
    """Raise the token, so that whatever else works on the VM stops at its next write.

    On a store that cannot be written (a full disk) the present token has to do: then nobody else can
    write either.
    """
    try:
        with store.write() as connection:
            token = leases.raise_token(connection, vm.vm_key, run.id, holder())
            cells.interrupt_attempts(connection, run.id, vm.id, token)
            return token, None
    except StoreError as error:
        with store.read() as connection:
            lease = leases.get_lease(connection, vm.vm_key)
        if lease is None or lease.run_id != run.id:
            raise
        return lease.token, error


def give_up(
    store: Store, vm: Vm, token: int, settled: RestoreOutcome, words: str, broken: StoreError | None
) -> None:
    """Record the outcome and release the lease, in one transaction.

    Raises StoreError that says that the VM was put back; `broken` is what kept the store from being written
    before.
    """
    try:
        with store.write() as connection:
            vms.set_restored(connection, vm.id, token, settled, {"words": words})
            leases.release_lease(connection, vm.vm_key, token)
    except StoreError as error:
        raise StoreError(
            f"{(broken or error).what} {words}; only the store does not know it yet.",
            fix=f"Make room, then: vnuma restore {vm.name}",
        ) from error


def record(store: Store, vm: Vm, token: int, outcome: RestoreOutcome, words: str) -> None:
    """Leave the outcome in the store; one that cannot be written must not hide the error on its way."""
    with suppress(StoreError), store.write() as connection:
        vms.set_restored(connection, vm.id, token, outcome, {"words": words})
