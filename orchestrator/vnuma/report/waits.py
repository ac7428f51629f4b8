"""What each form waited for, as a table: the largest wait types of any form."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.report.model import LoadedRun, WaitShare

MOST = 8
"""Wait types shown; the rest is in the raw data."""


@dataclass(frozen=True)
class WaitsTable:
    """Percent of elapsed time: `rows` are (wait type, one text a form)."""

    forms: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def waits_table(loaded: LoadedRun, vm: str) -> WaitsTable | None:
    """The forms of one VM whose waits are known; None when none is, or nothing was waited for."""
    known = [item for item in loaded.waits if item.vm == vm and item.shares is not None]
    largest: dict[str, float] = {}
    for item in known:
        for name, share in item.shares or ():
            largest[name] = max(share, largest.get(name, 0.0))
    names = sorted(largest, key=lambda name: (-largest[name], name))[:MOST]
    if not names:
        return None
    rows = tuple((name, tuple(_percent(item, name) for item in known)) for name in names)
    return WaitsTable(tuple(item.form for item in known), rows)


def _percent(item: WaitShare, name: str) -> str:
    share = (item.of(name) or 0.0) * 100
    return "< 0.1" if 0 < share < 0.05 else f"{share:.1f}"
