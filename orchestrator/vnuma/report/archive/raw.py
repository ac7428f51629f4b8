"""Every sample of a run as CSV and Parquet, with a dictionary that says what each column is."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from vnuma.report.model import LoadedRun
from vnuma.store.open import Store
from vnuma.store.samples import StoredSample, iter_samples

Kind = Literal["text", "whole", "number", "yes/no", "time"]
Values = dict[str, object]

_BATCH = 20_000
_DOCUMENTS = ("waits", "execution", "figures")
_ARROW: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "yes/no": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class RawColumn:
    """A column of the raw data: what it holds, in which unit. An empty field is: not known."""

    name: str
    kind: Kind
    unit: str
    what: str


COLUMNS = (
    RawColumn("run", "text", "", "name of the run"),
    RawColumn("simulated", "yes/no", "", "true: from the lab's cost model, not from hardware"),
    RawColumn("vm", "text", "", "inventory name of the VM"),
    RawColumn("block", "whole", "", "randomised block, from 1: each holds every column once"),
    RawColumn("position", "whole", "", "place of the cell in the order planned for this VM, from 1"),
    RawColumn("label", "text", "", "column of the block; the reference's second one ends in (A/A)"),
    RawColumn("arm", "text", "", "topology or named arm that was set"),
    RawColumn("attempt", "whole", "", "which try at the cell, from 1"),
    RawColumn("attempt_outcome", "text", "", "valid, invalid, failed or interrupted; only valid is analysed"),
    RawColumn("workload", "text", "", "what was timed"),
    RawColumn("size", "whole", "", "how large: what it counts is the study's size_word (results.json)"),
    RawColumn("form", "text", "", "which of the workload's forms, as client or server"),
    RawColumn("iteration", "whole", "", "number of the iteration in its boot, from 1, warm-ups apart"),
    RawColumn("warmup", "yes/no", "", "true: kept, never analysed"),
    RawColumn("at", "time", "UTC", "when the iteration ended, by the controller's clock"),
    RawColumn("cpu_ms", "number", "ms", "SQL Server's CPU time (SET STATISTICS TIME)"),
    RawColumn(
        "elapsed_ms",
        "number",
        "ms",
        "SQL Server's elapsed time, or the length of a throughput's window; as a figure lower is faster",
    ),
    RawColumn("parse_cpu_ms", "number", "ms", "CPU time of parse and compile"),
    RawColumn("parse_elapsed_ms", "number", "ms", "elapsed time of parse and compile"),
    RawColumn("client_ms", "number", "ms", "the controller's monotonic clock around the statement"),
    RawColumn("rows", "whole", "rows", "rows that came out"),
    RawColumn(
        "value", "number", "declared", "the workload's figure in its unit (results.json); empty for times"
    ),
    RawColumn("figures", "text", "declared", "other figures of the iteration by name, as JSON"),
    RawColumn("waits", "text", "ms", "difference of wait statistics by type, as JSON"),
    RawColumn("execution", "text", "", "scheduler, node, DOP, plan, grant and the clock used, as JSON"),
    RawColumn("reason", "text", "", "why there is no time; empty where there is one"),
)
"""The columns of samples.csv and samples.parquet."""


def write_samples(store: Store, loaded: LoadedRun, folder: Path) -> None:
    """Write samples.csv and samples.parquet; both hold every sample, counted or not."""
    names = [column.name for column in COLUMNS]
    schema = pa.schema([pa.field(column.name, _ARROW[column.kind]) for column in COLUMNS])
    with (
        store.read() as connection,
        (folder / "samples.csv").open("w", encoding="utf-8", newline="") as text,
        pq.ParquetWriter(folder / "samples.parquet", schema, compression="zstd") as parquet,
    ):
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        for batch in _batches(_rows(loaded, iter_samples(connection, loaded.run.id))):
            writer.writerows({name: _plain(value) for name, value in row.items()} for row in batch)
            parquet.write_table(pa.Table.from_pylist(batch, schema=schema))


def dictionary() -> str:
    """The data dictionary, for people."""
    lines = [f"| {c.name} | {c.kind} | {c.unit} | {c.what} |" for c in COLUMNS]
    return "\n".join(
        [
            "# Columns of samples.csv and samples.parquet",
            "",
            "One line an iteration, warm-ups and attempts that did not count included. An empty field means: "
            "not known. Analysed are lines with attempt_outcome valid, warmup false and no reason.",
            "",
            "| column | kind | unit | what it is |",
            "| --- | --- | --- | --- |",
            *lines,
            "",
        ]
    )


def _rows(loaded: LoadedRun, stored: Iterable[StoredSample]) -> Iterator[Values]:
    numbers = {attempt.id: (attempt.number, attempt.position) for attempt in loaded.attempts}
    own = {column.name for column in COLUMNS}
    for item in stored:
        number, position = numbers[item.attempt_id]
        values = {name: value for name, value in vars(item.sample).items() if name in own}
        outcome = item.attempt_outcome
        place: Values = {
            "run": loaded.run.name,
            "simulated": loaded.simulated is not None,
            "vm": item.vm,
            "block": item.block,
            "position": position,
            "label": item.label,
            "arm": item.arm,
            "attempt": number,
            "attempt_outcome": None if outcome is None else str(outcome),
        }
        yield place | values | {name: _document(values[name]) for name in _DOCUMENTS}


def _document(value: object) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)


def _batches(rows: Iterable[Values]) -> Iterator[list[Values]]:
    batch: list[Values] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _plain(value: object) -> object:
    """A value as CSV holds it: true and false in small letters, times in ISO 8601, nothing for unknown."""
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return "" if value is None else value
