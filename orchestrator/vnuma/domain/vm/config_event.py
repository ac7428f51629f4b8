"""Who changed a setting, from vCenter's reconfiguration events. Pure.

An event has the request (`configSpec`), and since vSphere 6.5 a list of what it changed (`configChanges`):
`config.hardware.numCPU: 8 -> 16;`. The request alone is no proof, since clients also send unchanged values.
Nor is the list, since it contains users' text. Quoted text is ignored, and no author is named if quotes do
not match. Published form of the list: https://github.com/puppetlabs/vmpooler/pull/629; the API:
https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/VmReconfiguredEvent
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vnuma.domain.vm.setting import AUTOMATIC, HARDWARE, TYPED, Value, meant

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
