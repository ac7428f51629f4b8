"""A change to a VM as a value: computed here, applied and read back elsewhere.

The same value serves the plan, check mode, the diff, applying and restoring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from vnuma.domain.vm.setting import (
    AUTOMATIC,
    DERIVED,
    HARDWARE,
    TYPED,
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
            Edit(edit.setting, as_written(current, edit.setting), edit.after)
            for edit in change_of_unknown(desired)
            if not _same(edit.setting, as_written(current, edit.setting), meant(edit.setting, edit.after))
        )
    )


def change_of_unknown(desired: Settings) -> Change:
    """The edits that give any VM `desired`, whatever it has: defaults too."""
    return Change(
        tuple(
            Edit(name, None, value)
            for name, value in sorted(desired.items(), key=lambda item: (is_extra_config(item[0]), item[0]))
            if name not in DERIVED and not is_evidence(name)
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


def _same(name: str, left: Value, right: Value) -> bool:
    """Equality as in vSphere: extraConfig ignores case, CPU sets have no order."""
    if left is None or right is None:
        empty = (None, "", (), 0) if name in AUTOMATIC else (None, "", ())
        return left in empty and right in empty
    if isinstance(left, tuple) and isinstance(right, tuple):
        return sorted(left) == sorted(right)
    if is_extra_config(name):
        return str(left).strip().lower() == str(right).strip().lower()
    return left == right


_PATHS: Mapping[str, str] = {name: spec.path for name, spec in TYPED.items()} | {HARDWARE: "version"}
"""Properties below `config`."""


@dataclass(frozen=True)
class ConfigEvent:
    r"""One reconfiguration: when (UTC), by whom (`DOMAIN\user`), its request and its changes.

    `wrote` are the settings in the request; `changes` is vCenter's list, None if the event has none.
    """

    at: datetime
    user: str
    wrote: Mapping[str, Value]
    changes: str | None = None
    deleted: str = ""
    """vCenter's list of deleted extraConfig keys."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who changed a setting, and when (UTC, ISO 8601). `before` is vCenter's text; empty: not reported."""

    user: str
    at: str
    before: str = ""


# Settings that vSphere changes along with the requested one.
_MOVES_WITH: Mapping[str, tuple[str, ...]] = {
    "memoryReservation": ("memoryReservationLockedToMax", "memoryMB"),
    "numCoresPerSocket": ("numCPUs",),
}

_UNSET = "<unset>"
_LONGEST = 200


def last_change(setting: str, now: Value, events: Sequence[ConfigEvent], kept: str) -> Author | str:
    """Who gave a setting its present value, or why that is unknown.

    `now` is the value as it would be written; `kept` says how long vCenter keeps events, or which were read.
    """
    for event in sorted(events, key=lambda one: one.at, reverse=True):
        texts = _change(setting, event)
        if texts is None:
            continue
        at = event.at.isoformat(timespec="seconds")
        if isinstance(texts, str):
            return f"the event by {event.user} at {at} cannot be read with certainty: {texts}"
        before, after = texts
        if not _is(setting, after, now):
            return (
                f"the last recorded change, by {event.user} at {at}, set {after[:_LONGEST]}: "
                "a later one is not recorded"
            )
        return Author(event.user, at, before[:_LONGEST])
    return f"no event of this change was found in vCenter; {kept}"


def _change(setting: str, event: ConfigEvent) -> tuple[str, str] | str | None:
    """A setting's texts before and after, if this event changed it; or why that is unclear."""
    names = {name.lower(): value for name, value in event.wrote.items()}
    if not {name.lower() for name in (setting, *_MOVES_WITH.get(setting, ()))} & names.keys():
        return None
    if event.changes is not None:
        gone = _listed(setting, event.deleted)
        return (gone[1], _UNSET) if isinstance(gone, tuple) else gone or _listed(setting, event.changes)
    return ("", _text(names[setting.lower()])) if setting.lower() in names else None


_TOKEN = re.compile(r'"(?:\\.|[^\\])*?"(?= -> |\s*[;,)]|\s*\Z)|"| -> |;(?=\s|\Z)', re.DOTALL)
"""A whole quoted text, an unclosed quote, or a separator of values and entries."""

_PATH = re.compile(r'\s*([^\s:"]+(?:\("[^"]*"\)[^\s:"]*)*): ')


@dataclass(frozen=True, slots=True)
class _Entry:
    """`PATH: BEFORE -> AFTER;`, or without an arrow everything in `before`, and `after` None."""

    path: str
    before: str
    after: str | None


def _entries(changes: str) -> Iterator[_Entry | None]:
    """The list's entries; None for a piece that is not one, such as after an unclosed quote."""
    start, arrow = 0, None
    for token in _TOKEN.finditer(changes):
        if token[0] == '"':
            break
        if token[0] == " -> ":
            arrow = arrow or token
        elif token[0] == ";":
            path = _PATH.match(changes, start, token.start())
            if path is None:
                yield None
            elif arrow is None:
                yield _Entry(path[1], changes[path.end() : token.start()], None)
            else:
                before, after = changes[path.end() : arrow.start()], changes[arrow.end() : token.start()]
                yield _Entry(path[1], _unquoted(before), _unquoted(after))
            start, arrow = token.end(), None
    if changes[start:].strip():
        yield None


def _listed(setting: str, changes: str) -> tuple[str, str] | str | None:
    """A setting's texts in vCenter's list; None if unchanged; a reason if unclear."""
    if setting in _PATHS:
        parent, _, leaf = rf"config.{_PATHS[setting]}".rpartition(".")
        path = rf"{re.escape(parent)}(?:\.{leaf}(?:\.\w+)?)?"  # the parent alone where it was absent before
    else:
        path = rf'config\.extraConfig\("{re.escape(setting)}"\)(?:\.value)?'
    if not re.search(path, changes, re.IGNORECASE):
        return None
    entries = list(_entries(changes))
    if None in entries:
        return "quotes in its list of changes do not match"
    mine = [one for one in entries if one and re.fullmatch(path, one.path, re.IGNORECASE)]
    if len({one.path.lower() for one in mine}) < len(mine):
        return "its list of changes names the setting twice"
    return next((texts for one in mine if (texts := _texts(one))), None)


def _texts(entry: _Entry) -> tuple[str, str] | None:
    """Before and after; None where both are equal."""
    if entry.after is not None:
        return None if entry.before == entry.after else (entry.before, entry.after)
    added = re.search(r'value = "([^"]*)"', entry.before)
    return (_UNSET, added[1]) if added else ("", "")


def _is(setting: str, after: str, now: Value) -> bool:
    """Whether a text is the value; for texts that are not plain values (sets, shares), trust the event."""
    chosen_by_vsphere = setting in AUTOMATIC and now == 0
    now = meant(setting, now)
    if not after or after.startswith("(") or isinstance(now, tuple) or chosen_by_vsphere:
        return True
    if setting.endswith("Shares"):
        return True  # the present level, and the number in the event
    if setting == HARDWARE:
        number = after.removeprefix("vmx-")  # vmx-09 is 9
        return number.isdecimal() and int(number) == now
    return after.lower() in (_text(now).lower(), _UNSET if now == meant(setting, None) else "")


def _text(value: Value) -> str:
    if value is None:
        return _UNSET
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
