"""Move to another store: its rows, and the audit log next to it."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vnuma.engine.access.places import audit_file
from vnuma.engine.lease.supervision import is_worked_on
from vnuma.errors import StoreError, VmHeld, write_fix
from vnuma.store import runs
from vnuma.store.one_run import copy_store, refuse_unless_empty
from vnuma.store.open import open_for_reading, open_store


def copy_whole_store(source_url: str, target_url: str) -> tuple[dict[str, int], Path | None]:
    """Copy an unused store into an empty one. The source stays as it is.

    Returns the rows by table, and the copied audit log, None where there was none: both are copied, or
    neither. Raises VmHeld while a run of it is alive, UsageError for a target that is not empty, StoreError.
    """
    source = open_for_reading(source_url)
    with source.read() as connection:
        alive = next((run for run in runs.list_runs(connection) if is_worked_on(connection, run)), None)
    if alive:
        raise VmHeld(
            f"{alive.name} is running: what it stores from now on would be missing in the copy.",
            fix=f"Wait, or vnuma stop {alive.name}; then copy.",
        )
    target = open_store(target_url)
    refuse_unless_empty(target)
    with _audit_copied(audit_file(source.place), audit_file(target.place)) as audit:
        rows = copy_store(source, target)
    return rows, audit


@contextmanager
def _audit_copied(old: Path, new: Path) -> Iterator[Path | None]:
    """Copy the audit log, the second way back to a baseline, before the first row, or copy nothing.

    An existing log is never replaced. An identical one, left by a killed copy, stays.
    """
    if not old.exists():
        yield None
        return
    made = not new.exists()
    if made:
        _copy_file(old, new)
    elif not filecmp.cmp(old, new, shallow=False):
        raise StoreError(
            f"Nothing was copied: another audit log than {old} is in the copy's place: {new}.",
            fix="If no VM is to be restored from that one, move it away; then copy again.",
        )
    try:
        yield new
    except BaseException:
        if made:
            new.unlink(missing_ok=True)
        raise


def _copy_file(old: Path, new: Path) -> None:
    """Write next to the target and rename. Raises StoreError, leaving nothing."""
    half = new.with_name(f"{new.name}.part")
    try:
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            shutil.copy2(old, half)
            half.replace(new)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"Nothing was copied: the audit log cannot be copied to {new} ({error.strerror}).",
            fix=write_fix(error, new.parent),
        ) from error
