"""Invariants after every strike: each VM at its baseline or protected, each sample there once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.support.lab import LabHandle
from tests.support.looking import settings_of
from vnuma.store import attempts, cells, leases, runs, samples, vms
from vnuma.store.open import Store
from vnuma.store.rows import CellState

Key = tuple[int, int, str, int, bool]


def altered(lab: LabHandle, store: Store, run_name: str, before: dict[str, Any]) -> list[str]:
    """Sentences about VMs that differ from their baseline without protection.

    A VM is protected if its baseline is stored, this run holds its lease, and it has the run's mark, so that
    every controller refuses it.
    """
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        rows = {row.name: row for row in vms.vms_of_run(connection, run.id)}
        held = {name: leases.get_lease(connection, row.vm_key) for name, row in rows.items()}
    wrong, seen = [], settings_of(lab, list(before))
    for name, wanted in before.items():
        now = seen[name]
        mark = now["keys"].pop("vnuma.run", None)
        if now == wanted and mark is None:
            continue
        row, lease = rows[name], held[name]
        if row.baseline is None or lease is None or lease.run_id != run.id:
            wrong.append(f"{name} is {now}, not {wanted}, and {run_name} holds no lease on it")
        elif now != wanted and (mark is None or json.loads(mark)["run"] != run_name):
            wrong.append(f"{name} is {now}, not {wanted}, and bears the mark {mark}")
    return wrong


def sample_keys(store: Store, run_name: str) -> Counter[Key]:
    """How often each sample is stored, by its place."""
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        return Counter(
            (s.attempt_id, s.sample.size, s.sample.form, s.sample.iteration, s.sample.warmup)
            for s in samples.iter_samples(connection, run.id)
        )


def lost(store: Store, run_name: str, earlier: Counter[Key], expected: int) -> list[str]:
    """Samples that are missing or doubled, and valid attempts with incomplete ones."""
    now = sample_keys(store, run_name)
    wrong = [f"sample {key} of {run_name} is gone" for key in earlier if key not in now]
    wrong += [f"sample {key} of {run_name} is there {n} times" for key, n in now.items() if n > 1]
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        tried = attempts.lines_of_run(connection, run.id)
    held = Counter(key[0] for key in now.elements())
    valid = [attempt for attempt in tried if attempt.outcome == "valid"]
    wrong += [
        f"valid attempt {attempt.id} of {run_name} has {held[attempt.id]} samples, not {expected}"
        for attempt in valid
        if held[attempt.id] != expected
    ]
    twice = [cell for cell, count in Counter(attempt.cell_id for attempt in valid).items() if count > 1]
    return wrong + [f"cell {cell} of {run_name} has two valid attempts" for cell in twice]


def unfinished(store: Store, run_name: str) -> list[str]:
    """Cells without a valid attempt at the end of a run."""
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        states = [cell.state for cell in cells.cells_of_run(connection, run.id)]
    valid = states.count(CellState.VALID)
    return [] if valid == len(states) else [f"{run_name}: {valid} of {len(states)} cells valid"]
