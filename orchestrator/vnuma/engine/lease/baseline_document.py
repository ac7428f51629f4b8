"""What a baseline contains, as facts of the VM and SQL Server and as the store's document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import LEASE_PREFIX, Power, Value
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.journal import Journal, noted_here
from vnuma.errors import NotAtBaseline, StoreError
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.types import canonical_json

GUEST_OF = "guest_of"
"""In a baseline: the address of the SQL Server whose settings it contains."""

_RECORDED = "baseline"
"""The audit log's action for the hash of a baseline."""

DEADLINES = "deadlines"
"""The audit log's action for the study's deadlines, which a restore from the log alone keeps."""

NOT_KNOWN = "not known until the VM is on"
"""In a planned diff: a SQL Server value that cannot be read, since the VM is off."""


@dataclass(frozen=True)
class GuestReader:
    """Where SQL Server's part of a baseline is read: the server in the inventory, proven or not."""

    where: str
    read: Callable[[], dict[str, object]]
    """Reads the SQL Server settings that the study changes. Raises PreflightBlocked."""


def baseline_document(vm: VmFacts, guest: GuestReader) -> dict[str, object]:
    """Everything to restore, as JSON: settings, SQL Server's settings, power state and host."""
    return {
        "settings": {name: value for name, value in vm.settings.items() if not name.startswith(LEASE_PREFIX)},
        **guest_document(guest),
        "power": str(vm.power),
        "host": vm.host_name,
        "hardware_version": vm.hardware_version,
    }


def guest_document(guest: GuestReader) -> dict[str, object]:
    """SQL Server's part of a baseline."""
    return {"guest": guest.read(), GUEST_OF: guest.where}


def baseline_settings(vm: Vm) -> dict[str, Value]:
    """The settings of a stored baseline, with lists turned back into tuples."""
    settings = baseline_of(vm)["settings"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def baseline_guest(vm: Vm) -> dict[str, Any]:
    """SQL Server's settings in the baseline, by key; empty for none."""
    guest: dict[str, Any] = baseline_of(vm).get("guest", {})
    return guest


def baseline_power(vm: Vm) -> Power:
    """The power state to restore."""
    return Power(str(baseline_of(vm)["power"]))


def baseline_of(vm: Vm) -> dict[str, Any]:
    """The document as stored. Raises StoreError where there is none."""
    if not isinstance(vm.baseline, dict):
        raise StoreError(
            f"{vm.name} has no baseline in the store.", fix="Nothing was changed; start the run again."
        )
    return vm.baseline


def record_baseline(journal: Journal, baseline: object) -> None:
    """Note the hash of a baseline in the audit log, before the store has it: see `refuse_altered`."""
    journal.note(_RECORDED, _hash_of(baseline))


def refuse_altered(store: Store, run: Run, vm: Vm) -> None:
    """Raise NotAtBaseline for a baseline that is none of those which this machine has recorded for the run.

    Whoever can write the store can add a corrected one. Silent where this machine has recorded none.
    """
    if vm.baseline is None:
        return
    recorded = [line.detail for line in noted_here(store, run, vm.vm_key, _RECORDED)]
    if recorded and _hash_of(vm.baseline) not in recorded:
        raise NotAtBaseline(
            f"{vm.name} may not be at its baseline: the one in the store was not recorded on this machine, "
            f"whose audit log has {recorded[-1]}. Nothing was changed now.",
            fix="If another machine has resumed the run, continue there. If that one is gone, and "
            f"vnuma baseline show {vm.name} is right, move {audit_file(store.place)} away first. Otherwise "
            f"somebody altered the store: vnuma audit {run.name} shows the values before each change, and "
            "vnuma audit verify whether the log is intact.",
        )


def _hash_of(baseline: object) -> str:
    return f"sha256 {hashlib.sha256(canonical_json(baseline).encode()).hexdigest()}"
