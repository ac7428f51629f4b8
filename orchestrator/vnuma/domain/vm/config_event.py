"""Who changed a setting, by the events that vCenter keeps of reconfigurations. Pure.

An event has the request (`configSpec`), and since vSphere 6.5 a list of what it changed (`configChanges`):
`config.hardware.numCPU: 8 -> 16;`. The request alone is no proof: clients also send what stays as it is. The
list alone is none either, because it holds text that users wrote. Form of the list, as published:
https://github.com/puppetlabs/vmpooler/pull/629; the API:
https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/VmReconfiguredEvent
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vnuma.domain.vm.setting import AUTOMATIC, HARDWARE, TYPED, Value

_PATHS: Mapping[str, str] = {name: spec.path for name, spec in TYPED.items()} | {HARDWARE: "version"}
"""Properties below `config`."""


@dataclass(frozen=True)
class ConfigEvent:
    """One reconfiguration: when (UTC), by whom (`DOMAIN\\user`), what it asked for, and what it changed.

    `wrote` are settings that the request named; `changes` is vCenter's list, None where the event has none.
    """

    at: datetime
    user: str
    wrote: Mapping[str, Value]
    changes: str | None = None
    deleted: str = ""
    """Of vCenter's list what it deleted: keys of extraConfig."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who changed a setting, and when (UTC, ISO 8601). `before` is vCenter's text; empty: not said."""

    user: str
    at: str
    before: str = ""


# What vSphere changes with another setting, though the request names only that one.
_MOVES_WITH: Mapping[str, tuple[str, ...]] = {
    "memoryReservation": ("memoryReservationLockedToMax", "memoryMB"),
    "numCoresPerSocket": ("numCPUs",),
}

_UNSET = "<unset>"
_LONGEST = 200


def last_change(setting: str, now: Value, events: Sequence[ConfigEvent], kept: str) -> Author | str:
    """Who gave a setting the value that it has now, or why that is not known.

    `now` is the setting's value as it would be asked for; `kept` says how long vCenter keeps events.
    """
    for event in sorted(events, key=lambda one: one.at, reverse=True):
        texts = _change(setting, event)
        if texts is None:
            continue
        before, after = texts
        at = event.at.isoformat(timespec="seconds")
        if not _is(setting, after, now):
            return (
                f"the last recorded change, by {event.user} at {at}, set {after}: a later one is not recorded"
            )
        return Author(event.user, at, before)
    return f"vCenter has no event of this change; {kept}"


def _change(setting: str, event: ConfigEvent) -> tuple[str, str] | None:
    """A setting's texts before and after, where this event changed it."""
    names = {name.lower(): value for name, value in event.wrote.items()}
    if not {name.lower() for name in (setting, *_MOVES_WITH.get(setting, ()))} & names.keys():
        return None
    if event.changes is not None:
        gone = _listed(setting, event.deleted)
        return (gone[1], _UNSET) if gone else _listed(setting, event.changes)
    return ("", _text(names[setting.lower()])) if setting.lower() in names else None


def _listed(setting: str, changes: str) -> tuple[str, str] | None:
    """The texts of a setting in vCenter's list; None where it is not there."""
    if setting in _PATHS:
        path = re.escape(_PATHS[setting]) + r"(?:\.\w+)?"
    else:
        path = rf'extraConfig\("{re.escape(setting)}"\)(?:\.value)?'
    found = re.search(rf"(?:^|[\s;])config\.{path}: ([^\n]*?);(?:\s|$)", changes, re.IGNORECASE)
    if found is None:
        return None
    before, arrow, after = found[1][:_LONGEST].partition(" -> ")
    if arrow:
        return _unquoted(before), _unquoted(after)
    added = re.search(r'value = "([^"]*)"', found[1])
    return (_UNSET, added[1]) if added else ("", "")


def _is(setting: str, after: str, now: Value) -> bool:
    """Whether a text is the value; where texts are not plain values (sets, shares), the event is believed."""
    chosen_by_vsphere = setting in AUTOMATIC and now == 0
    if not after or after.startswith("(") or isinstance(now, tuple) or chosen_by_vsphere:
        return True
    if setting.endswith("Shares"):
        return True  # the level now, their number in the event
    return after.removeprefix("vmx-").lower() == _text(now).lower()


def _text(value: Value) -> str:
    if value is None:
        return _UNSET
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
