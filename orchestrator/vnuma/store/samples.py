"""Samples: written once, as measured; read back one by one (in bulk: `timed`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from sqlalchemy import Connection, insert, select

from vnuma.store import tables
from vnuma.store.leases import check_attempt
from vnuma.store.rows import Outcome, Sample

_sample = tables.sample.c
_attempt = tables.attempt.c
_cell = tables.cell.c
_vm = tables.vm.c

_BATCH = 10_000


@dataclass(frozen=True)
class StoredSample:
    """A sample with its place in the study. `attempt_outcome` is None while the attempt is open."""

    attempt_id: int
    cell_id: int
    vm_id: int
    vm: str
    arm: str
    label: str
    block: int
    attempt_outcome: Outcome | None
    sample: Sample


def add_samples(conn: Connection, attempt_id: int, token: int, rows: Sequence[Sample]) -> None:
    """Write samples of an open attempt. Raises LeaseLost when the token is outdated."""
    check_attempt(conn, attempt_id, token)
    if rows:
        conn.execute(insert(tables.sample), [sample_values(attempt_id, row) for row in rows])


def iter_samples(conn: Connection, run_id: int) -> Iterator[StoredSample]:
    """The run's samples one by one, to limit memory; use within the read unit."""
    place = (_attempt.id, _cell.id, _vm.id, _vm.name, _cell.arm, _cell.label, _cell.block, _attempt.outcome)
    query = (
        select(*place, *(_sample[column] for column in _COLUMNS.values()))
        .join(tables.attempt, _attempt.id == _sample.attempt_id)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .join(tables.vm, _vm.id == _cell.vm_id)
        .where(_cell.run_id == run_id)
        .order_by(*_ORDER)
        .execution_options(yield_per=_BATCH)
    )
    for row in conn.execute(query):
        sample = Sample(**dict(zip(_COLUMNS, row[len(place) :], strict=True)))
        yield StoredSample(*(*row[: len(place)], sample))


def sample_values(attempt_id: int, sample: Sample) -> dict[str, object]:
    """A sample's row."""
    values: dict[str, object] = {column: getattr(sample, name) for name, column in _COLUMNS.items()}
    return {**values, "attempt_id": attempt_id, "outcome": sample.outcome}


_ORDER = (_sample.attempt_id, _sample.at, _sample.warmup.desc(), _sample.iteration)
_COLUMNS = {
    item.name: f"{item.name}_json" if f"{item.name}_json" in _sample else item.name for item in fields(Sample)
}
"""The column of each field of a sample: documents are JSON columns."""
