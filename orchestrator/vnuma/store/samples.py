"""Samples: written once, as they were measured; read back row by row or as whole columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from sys import intern
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, func, insert, select

from vnuma.store import tables
from vnuma.store.leases import check_attempt
from vnuma.store.rows import Outcome, Sample

_sample = tables.sample.c
_attempt = tables.attempt.c
_cell = tables.cell.c
_vm = tables.vm.c

_BATCH = 10_000
_NAN = float("nan")


@dataclass(frozen=True)
class StoredSample:
    """A sample with its place in the study. `attempt_outcome` is None while the attempt goes on."""

    attempt_id: int
    cell_id: int
    vm_id: int
    vm: str
    arm: str
    label: str
    block: int
    attempt_outcome: Outcome | None
    sample: Sample


@dataclass(frozen=True)
class SampleColumns:
    """All samples of a run as columns of equal length, in the order of attempts and of time.

    Whole numbers are arrays of 64 bits, times in milliseconds are doubles in which NaN stands for
    None (`reason` says why), `at` is seconds since 1970 in UTC. numpy.frombuffer reads the arrays
    without copying. Waits are left out: `iter_samples` has them.
    """

    attempt_id: array[int] = field(default_factory=lambda: array("q"))
    cell_id: array[int] = field(default_factory=lambda: array("q"))
    vm_id: array[int] = field(default_factory=lambda: array("q"))
    vm: list[str] = field(default_factory=list)
    arm: list[str] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    block: array[int] = field(default_factory=lambda: array("q"))
    attempt_outcome: list[Outcome | None] = field(default_factory=list)
    workload: list[str] = field(default_factory=list)
    size: array[int] = field(default_factory=lambda: array("q"))
    form: list[str] = field(default_factory=list)
    iteration: array[int] = field(default_factory=lambda: array("q"))
    warmup: list[bool] = field(default_factory=list)
    reason: list[str | None] = field(default_factory=list)
    cpu_ms: array[float] = field(default_factory=lambda: array("d"))
    elapsed_ms: array[float] = field(default_factory=lambda: array("d"))
    client_ms: array[float] = field(default_factory=lambda: array("d"))
    rows: list[int | None] = field(default_factory=list)
    at: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.attempt_id)


def add_samples(conn: Connection, attempt_id: int, token: int, rows: Sequence[Sample]) -> None:
    """Write samples of an open attempt, durable at the commit. LeaseLost when the token is outdated."""
    check_attempt(conn, attempt_id, token)
    if rows:
        conn.execute(insert(tables.sample), [_values(attempt_id, row) for row in rows])


def count(conn: Connection, run_id: int) -> int:
    """How many samples the run has: warm-ups and failed iterations included."""
    query = (
        select(func.count())
        .select_from(tables.sample)
        .join(tables.attempt, _attempt.id == _sample.attempt_id)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id)
    )
    return conn.execute(query).scalar_one()


def iter_samples(conn: Connection, run_id: int) -> Iterator[StoredSample]:
    """The run's samples one by one, without holding them all in memory; use within the read unit."""
    places: dict[int, tuple[Any, ...]] = {
        row.attempt_id: (*row[:-1], _outcome(row.attempt_outcome)) for row in conn.execute(_places(run_id))
    }
    query = (
        select(_sample.attempt_id, *(_sample[_column_of(name)] for name in _SAMPLE_FIELDS))
        .join(tables.attempt, _attempt.id == _sample.attempt_id)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id)
        .order_by(*_ORDER)
        .execution_options(yield_per=_BATCH)
    )
    for attempt_id, *values in conn.execute(query):
        yield StoredSample(*(*places[attempt_id], Sample(*values)))


def samples_of_run(conn: Connection, run_id: int) -> SampleColumns:
    """The run's samples as columns: made for a million of them."""
    places = {row.attempt_id: row for row in conn.execute(_places(run_id))}
    query = (
        select(*(_sample[name] for name in _OWN_COLUMNS))
        .join(tables.attempt, _attempt.id == _sample.attempt_id)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id)
        .order_by(*_ORDER)
        .execution_options(yield_per=_BATCH)
    )
    columns = SampleColumns()
    for batch in conn.execute(query).partitions():
        _append(columns, dict(zip(_OWN_COLUMNS, zip(*batch, strict=True), strict=True)), places)
    return columns


def _append(
    columns: SampleColumns,
    batch: dict[str, tuple[Any, ...]],
    places: dict[int, Row[*tuple[Any, ...]]],
) -> None:
    """Add a batch; repeated words become one string each, so that a million rows stay small."""
    for name in ("attempt_id", "size", "iteration", "warmup", "reason", "rows"):
        getattr(columns, name).extend(batch[name])
    for name in ("workload", "form"):
        getattr(columns, name).extend(map(intern, batch[name]))
    for name in ("cpu_ms", "elapsed_ms", "client_ms"):
        getattr(columns, name).extend(_NAN if value is None else value for value in batch[name])
    columns.at.extend(moment.timestamp() for moment in batch["at"])
    owners = [places[attempt_id] for attempt_id in batch["attempt_id"]]
    for name in ("cell_id", "vm_id", "vm", "arm", "label", "block"):
        position = _PLACE_COLUMNS.index(name)
        getattr(columns, name).extend(owner[position] for owner in owners)
    outcomes = {key: _outcome(place.attempt_outcome) for key, place in places.items()}
    columns.attempt_outcome.extend(outcomes[attempt_id] for attempt_id in batch["attempt_id"])


def _place_columns() -> tuple[ColumnElement[Any], ...]:
    return (
        _attempt.id.label("attempt_id"),
        _cell.id.label("cell_id"),
        _vm.id.label("vm_id"),
        _vm.name.label("vm"),
        _cell.arm,
        _cell.label,
        _cell.block,
        _attempt.outcome.label("attempt_outcome"),
    )


def _places(run_id: int) -> Select[*tuple[Any, ...]]:
    """One row per attempt of the run: where its samples belong."""
    return (
        select(*_place_columns())
        .select_from(tables.attempt)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .join(tables.vm, _vm.id == _cell.vm_id)
        .where(_cell.run_id == run_id)
    )


def _outcome(stored: str | None) -> Outcome | None:
    return None if stored is None else Outcome(stored)


def _values(attempt_id: int, sample: Sample) -> dict[str, object]:
    values: dict[str, object] = {_column_of(name): getattr(sample, name) for name in _SAMPLE_FIELDS}
    return {**values, "attempt_id": attempt_id, "outcome": sample.outcome}


def _column_of(field_name: str) -> str:
    """Where a sample's field stands: documents are columns of JSON."""
    return f"{field_name}_json" if f"{field_name}_json" in _sample else field_name


_ORDER = (_sample.attempt_id, _sample.at, _sample.warmup.desc(), _sample.iteration)
_SAMPLE_FIELDS = tuple(item.name for item in fields(Sample))
_OWN_COLUMNS = (
    *("attempt_id", "workload", "size", "form", "iteration", "warmup", "reason"),
    *("cpu_ms", "elapsed_ms", "client_ms", "rows", "at"),
)
_PLACE_COLUMNS = tuple(column.key for column in _place_columns())
