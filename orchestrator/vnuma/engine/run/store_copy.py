"""Move to another store: its rows, and the audit log beside it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from vnuma.engine.access.places import audit_file
from vnuma.engine.lease.supervision import is_alive
from vnuma.errors import StoreError, VmHeld, to_write
from vnuma.store import runs
from vnuma.store.copy_store import copy_store
from vnuma.store.open import Store, open_for_reading, open_store


@dataclass(frozen=True)
class Copied:
    """What a copy holds: rows by table, and the copied audit log, None where there was none."""

    source: Store
    target: Store
    rows: dict[str, int]
    audit: Path | None


def copy_whole_store(source_url: str, target_url: str) -> Copied:
    """Copy a store that nobody works with into an empty one. The source stays as it is.

    Raises VmHeld while a run of it is alive, UsageError for a target that is not empty, StoreError.
    """
    source = open_for_reading(source_url)
    with source.read() as connection:
        alive = next((run for run in runs.list_runs(connection) if is_alive(run)), None)
    if alive:
        raise VmHeld(
            f"{alive.name} is running: what it stores from now on would be missing in the copy.",
            fix=f"Wait, or vnuma stop {alive.name}; then copy.",
        )
    target = open_store(target_url)
    rows = copy_store(source, target)
    return Copied(source, target, rows, _copy_audit(source, target))


def _copy_audit(source: Store, target: Store) -> Path | None:
    """The audit log is the second way back to a baseline. One that is there already is never replaced."""
    old, new = audit_file(source.place), audit_file(target.place)
    if not old.exists():
        return None
    if new.exists():
        raise StoreError(
            f"The rows were copied, but not the audit log: {new} exists already.",
            fix=f"Keep {old} as well: vnuma restore --from-audit {old} reads it.",
        )
    try:
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(old, new)
    except OSError as error:
        raise StoreError(
            f"The rows were copied, but not the audit log to {new} ({error.strerror}).",
            fix=to_write(error, new.parent),
        ) from error
    return new
