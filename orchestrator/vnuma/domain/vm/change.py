"""A change to a VM as a value: computed here, applied and read back elsewhere.

The same value serves the plan, check mode, the diff, applying and restoring.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from vnuma.domain.vm.setting import (
    AUTOMATIC,
    DERIVED,
    Settings,
    Value,
    is_evidence,
    is_extra_config,
    is_governed,
    meant,
    needs_power_off,
)


@dataclass(frozen=True)
class Edit:
    """One setting, before and after. None on either side: not set."""

    setting: str
    before: Value
    after: Value

    def __str__(self) -> str:
        """`numa.vcpu.min: 8 -> not set`."""
        return f"{self.setting}: {value_words(self.before)} -> {value_words(self.after)}"


def value_words(value: Value, *, unset: str = "not set") -> str:
    """A setting's value as text; `unset` is the word for none."""
    if value is None or value == ():
        return unset
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Change:
    """Edits in a stable order. Empty: nothing to do."""

    edits: tuple[Edit, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.edits)

    def __iter__(self) -> Iterator[Edit]:
        return iter(self.edits)

    @cached_property
    def needs_power_off(self) -> bool:
        """Whether any edit takes effect only with the VM off."""
        return any(needs_power_off(edit.setting) for edit in self.edits)

    @property
    def desired(self) -> dict[str, Value]:
        """The values after the change, by setting."""
        return {edit.setting: edit.after for edit in self.edits}


def change_to(current: Settings, desired: Settings) -> Change:
    """The edits that turn `current` into `desired`; other settings are kept.

    Evidence keys and derived values are never edited: vSphere ignores or computes them.
    """
    return Change(
        tuple(
            Edit(name, as_written(current, name), value)
            for name, value in sorted(desired.items(), key=lambda item: (is_extra_config(item[0]), item[0]))
            if name not in DERIVED
            and not is_evidence(name)
            and not _same(name, as_written(current, name), meant(name, value))
        )
    )


def with_lock_reservation(change: Change, current: Settings) -> tuple[Edit, ...]:
    """The edits, and the reservation that vSphere changes with the lock to all memory."""
    if change.desired.get("memoryReservationLockedToMax") is not True:
        return change.edits
    before, memory = current.get("memoryReservation"), {**current, **change.desired}.get("memoryMB")
    if before == memory or "memoryReservation" in change.desired:
        return change.edits
    return (*change.edits, Edit("memoryReservation", before, memory))


def as_written(settings: Settings, name: str) -> Value:
    """A setting as it would be written: 0 for a number that vSphere chose itself, None if it was not read."""
    automatic = AUTOMATIC.get(name)
    if automatic and settings.get(automatic) is True:
        return 0
    return meant(name, settings[name]) if name in settings else None


def settings_after(current: Settings, desired: Settings) -> dict[str, Value]:
    """The settings after `desired`, for a power-on."""
    after = {**current, **desired}
    for name, automatic in AUTOMATIC.items():
        if name in desired:
            after[automatic] = not desired[name]
    return after


def change_back(current: Settings, baseline: Settings) -> Change:
    """The edits that restore the VM's baseline.

    Governed extraConfig keys that the baseline lacks are removed. A value that was and is automatic is not
    sent: sending 0 again forces a hardware reconfigure (terraform-provider-vsphere pull 2732).
    """
    desired = {name: value for name, value in baseline.items() if not is_evidence(name)}
    for name in current:
        if is_extra_config(name) and is_governed(name) and name not in baseline:
            desired[name] = None
    for value, automatic in AUTOMATIC.items():
        if baseline.get(automatic) is False:
            continue
        if current.get(automatic) is True:
            desired.pop(value, None)  # unset before: reads back as automatic with a computed value
        elif baseline.get(automatic) is True:
            desired[value] = 0
    if baseline.get("memoryReservationLockedToMax") is True:
        desired.pop("memoryReservation", None)
    return change_to(current, desired)


def net(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The net effect of consecutive edits: each setting's first and last value, if they differ."""
    first: dict[str, Edit] = {}
    for edit in edits:
        begun = first.get(edit.setting, edit)
        first[edit.setting] = Edit(edit.setting, begun.before, edit.after)
    return tuple(
        edit
        for name, edit in first.items()
        if not _same(name, meant(name, edit.before), meant(name, edit.after))
    )


def differences(expected: Settings, observed: Settings) -> Change:
    """The expected settings that read back differently. Empty: all equal."""
    return change_to(observed, expected)


def _same(name: str, left: Value, right: Value) -> bool:
    """Equality as in vSphere: extraConfig ignores case, CPU sets have no order."""
    if left is None or right is None:
        empty = (None, "", (), 0) if name in AUTOMATIC else (None, "", ())
        return left in empty and right in empty
    if isinstance(left, tuple) and isinstance(right, tuple):
        return sorted(left) == sorted(right)
    if is_extra_config(name):
        return _extra_config_text(left) == _extra_config_text(right)
    return left == right


def _extra_config_text(value: Value) -> str:
    return str(value).strip().lower()
