"""Waits as tables: the largest wait types by form, and in each form by arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vnuma.domain.vm.provenance import banner
from vnuma.report.model.executions import WaitShare
from vnuma.report.model.grid import GridTable
from vnuma.report.model.model import LoadedRun

MOST = 8
"""Most wait types shown; the raw data has all."""

NO_WAITS = "wait statistics are not known"


@dataclass(frozen=True)
class WaitsTable:
    """Percent of elapsed time: `rows` are (wait type, one text a column)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def waits_tables(loaded: LoadedRun, vm: str) -> list[WaitsTable]:
    """All arms by form first, then each form by arm; empty when waits are unknown or none occurred."""
    forms = [item for item in loaded.waits if item.vm == vm and item.shares is not None]
    tables = [_table("All arms", [f"Form {item.form}" for item in forms], forms)]
    for form in dict.fromkeys(item.form for item in forms):
        arms = _by_arm(loaded, vm, form)
        tables.append(_table(f"Form {form}, by arm", [str(item.arm) for item in arms], arms))
    return [table for table in tables if table.rows]


def waits_grids(loaded: LoadedRun, vm: str) -> list[GridTable]:
    """The same tables for files: each caption has the unit, the VM and arms, and whether it is simulated."""
    simulated = f"{banner(loaded.simulated)}. " if loaded.simulated else ""
    return [
        GridTable(
            f"{simulated}{loaded.run.name}, {vm}: waits, {table.title[:1].lower()}{table.title[1:]}; % of "
            "elapsed time, lower is less waiting",
            ("wait type", *table.columns),
            tuple((name, *shares) for name, shares in table.rows),
        )
        for table in waits_tables(loaded, vm)
    ]


def _by_arm(loaded: LoadedRun, vm: str, form: str) -> list[WaitShare]:
    """One form's arms in the study's order, the positive control last."""
    known = {
        item.arm: item
        for item in loaded.waits_by_arm
        if (item.vm, item.form) == (vm, form) and item.shares is not None
    }
    order = [arm for arm in loaded.study.labels if arm in known]
    return [known[arm] for arm in [*order, *(arm for arm in known if arm not in order)]]


def _table(title: str, columns: Sequence[str], known: Sequence[WaitShare]) -> WaitsTable:
    largest: dict[str, float] = {}
    for item in known:
        for name, share in item.shares or ():
            largest[name] = max(share, largest.get(name, 0.0))
    names = sorted(largest, key=lambda name: (-largest[name], name))[:MOST]
    rows = tuple((name, tuple(_percent(item, name) for item in known)) for name in names)
    return WaitsTable(title, tuple(columns), rows)


def _percent(item: WaitShare, name: str) -> str:
    share = (item.of(name) or 0.0) * 100
    return "< 0.1" if 0 < share < 0.05 else f"{share:.1f}"
