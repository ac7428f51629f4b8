"""Every sample of a run as CSV, Arrow table and Parquet, with a data dictionary; and read back from CSV.

pyarrow is optional, since it takes 150 MB.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from vnuma.errors import require_packages
from vnuma.report.model.grid import field_text
from vnuma.report.model.model import LoadedRun
from vnuma.report.tables.csv_export import TABLES, Column, described, write_tidy
from vnuma.store.one_run import Rows, moment_of
from vnuma.store.open import Store
from vnuma.store.rows import Sample
from vnuma.store.samples import StoredSample, iter_samples
from vnuma.words.bounded_json import read_json
from vnuma.words.plain_text import refuse_controls

if TYPE_CHECKING:
    import pyarrow as pa


Values = dict[str, object]


def parquet_possible() -> bool:
    """Whether this Python environment has pyarrow."""
    return find_spec("pyarrow") is not None


@contextmanager
def parquet_file(path: Path, columns: Sequence[Column]) -> Iterator[Callable[[list[Values]], None]]:
    """A Parquet file of these columns; yields a function that appends rows. Raises EnvironmentProblem."""
    arrow = _pyarrow()
    schema = _schema(columns)
    with arrow.parquet.ParquetWriter(path, schema, compression="zstd") as parquet:
        yield lambda rows: parquet.write_table(arrow.Table.from_pylist(rows, schema=schema))


def table_of(columns: Sequence[Column], batches: Iterable[list[Values]]) -> pa.Table:
    """Rows with their columns' types; sizes are text if one of them is `all`. Raises EnvironmentProblem."""
    arrow = _pyarrow()
    schema = _schema(columns)
    parts = [
        arrow.Table.from_pylist([_typed(row, schema) for row in batch], schema=schema) for batch in batches
    ]
    return arrow.concat_tables(parts) if parts else schema.empty_table()


def _pyarrow() -> Any:
    require_packages("An Arrow table or Parquet file", "pyarrow")
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    return pyarrow


def _schema(columns: Sequence[Column]) -> pa.Schema:
    arrow = _pyarrow()
    types = {
        "text": arrow.string(),
        "whole": arrow.int64(),
        "number": arrow.float64(),
        "yes/no": arrow.bool_(),
        "time": arrow.timestamp("us", tz="UTC"),
    }
    return arrow.schema([arrow.field(column.name, types[column.kind]) for column in columns])


def _typed(row: Values, schema: pa.Schema) -> Values:
    """The row with sizes as text where necessary: numbers, or `all`."""
    text = _pyarrow().string()
    texts = {name for name in row if schema.field(name).type == text and row[name] is not None}
    return {name: str(value) if name in texts else value for name, value in row.items()}


SAMPLES = "samples"
"""The name of the table of all samples."""

SAMPLES_CSV = "samples.csv"
PARQUET = "samples.parquet"

_BATCH = 20_000
_DOCUMENTS = ("waits", "execution", "figures")
_NUMBERS = ("cpu_ms", "elapsed_ms", "parse_cpu_ms", "parse_elapsed_ms", "client_ms", "value")

COLUMNS = (
    Column("run", "text", "", "name of the run"),
    Column("simulated", "yes/no", "", "true: from the lab's cost model, not from hardware"),
    Column("vm", "text", "", "inventory name of the VM"),
    Column("block", "whole", "", "randomised block, from 1: each has every column once"),
    Column("position", "whole", "", "position of the cell in this VM's planned order, from 1"),
    Column("label", "text", "", "column of the block; the reference's second one ends in (A/A)"),
    Column("arm", "text", "", "topology or named arm that was set"),
    Column("attempt", "whole", "", "number of the attempt at the cell, from 1"),
    Column("attempt_outcome", "text", "", "valid, invalid, failed or interrupted; only valid is analysed"),
    Column("workload", "text", "", "what was timed"),
    Column("size", "whole", "", "size, in the study's size_word (results.json)"),
    Column("form", "text", "", "which of the workload's forms, as client or server"),
    Column("iteration", "whole", "", "number of the iteration in its boot, from 1, warm-ups apart"),
    Column("warmup", "yes/no", "", "true: kept, never analysed"),
    Column("at", "time", "UTC", "when the iteration ended, by the controller's clock"),
    Column("cpu_ms", "number", "ms", "SQL Server's CPU time (SET STATISTICS TIME)"),
    Column(
        "elapsed_ms",
        "number",
        "ms",
        "SQL Server's elapsed time, or the length of a throughput's window; as a figure lower is faster",
    ),
    Column("parse_cpu_ms", "number", "ms", "CPU time of parse and compile"),
    Column("parse_elapsed_ms", "number", "ms", "elapsed time of parse and compile"),
    Column("client_ms", "number", "ms", "the controller's monotonic clock around the statement"),
    Column("rows", "whole", "rows", "rows returned"),
    Column(
        "value", "number", "declared", "the workload's figure in its unit (results.json); empty for times"
    ),
    Column("figures", "text", "declared", "other figures of the iteration by name, as JSON"),
    Column("waits", "text", "ms", "difference of wait statistics by type, as JSON"),
    Column("execution", "text", "", "node, DOP, plan, grant and clock, or a program's output, as JSON"),
    Column("reason", "text", "", "why there is no time; empty where there is one"),
)
"""The columns of samples.csv and samples.parquet."""


def write_samples(store: Store, loaded: LoadedRun, folder: Path) -> None:
    """Write samples.csv, and with pyarrow samples.parquet: every sample, counted or not."""
    possible = parquet_possible()
    with (
        store.read() as connection,
        (folder / SAMPLES_CSV).open("w", encoding="utf-8", newline="") as text,
        parquet_file(folder / PARQUET, COLUMNS) if possible else nullcontext() as append,
    ):
        batches = _batches(_rows(loaded, iter_samples(connection, loaded.run.id)))
        write_tidy(text, COLUMNS, _appended(batches, append))


def _appended(
    batches: Iterable[list[Values]], append: Callable[[list[Values]], None] | None
) -> Iterator[Values]:
    """Each row, after its batch was appended."""
    for batch in batches:
        if append:
            append(batch)
        yield from batch


def sample_table(store: Store, loaded: LoadedRun) -> pa.Table:
    """The content of samples.parquet in memory: about 1 kB a sample. Raises EnvironmentProblem."""
    with store.read() as connection:
        return table_of(COLUMNS, _batches(_rows(loaded, iter_samples(connection, loaded.run.id))))


def print_samples(store: Store, loaded: LoadedRun, out: TextIO) -> None:
    """Print the lines of samples.csv one by one, without holding them all."""
    with store.read() as connection:
        write_tidy(out, COLUMNS, _rows(loaded, iter_samples(connection, loaded.run.id)))


MOST_SAMPLES = 2_000_000
"""Most samples of an archive. A study of 100 arms, 20 blocks and 60 iterations a boot has 120,000."""


def read_samples(text: Iterable[str], rows: Rows) -> Iterator[tuple[int, Sample]]:
    """The samples of samples.csv, each with the id of its attempt in these rows of its run.

    Raises ValueError for a line that vnuma does not write.
    """
    attempts = _attempts_by_place(rows)
    for number, line in enumerate(csv.DictReader(text, strict=True), start=1):
        if number > MOST_SAMPLES:
            raise ValueError(f"more than {MOST_SAMPLES:,} samples")
        try:
            yield attempts[line["vm"], line["position"], line["attempt"]], _sample(line)
        except KeyError as error:
            raise ValueError(f"sample {number}: no such attempt or column, {error}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"sample {number}: {error}") from error


def _attempts_by_place(rows: Rows) -> dict[tuple[str, str, str], int]:
    """Ids of the attempts by VM, position and number, as samples.csv has them."""
    vms = {vm["id"]: str(field_text(vm["name"])) for vm in rows["vm"]}
    cells = {cell["id"]: (vms[cell["vm_id"]], str(cell["position"])) for cell in rows["cell"]}
    return {(*cells[one["cell_id"]], str(one["number"])): one["id"] for one in rows["attempt"]}


def _sample(line: Mapping[str, str]) -> Sample:
    numbers: dict[str, Any] = {name: float(line[name]) if line[name] else None for name in _NUMBERS}
    documents: dict[str, Any] = {name: read_json(line[name]) if line[name] else None for name in _DOCUMENTS}
    for name in ("workload", "form", "reason"):
        refuse_controls(line[name])
    return Sample(
        workload=line["workload"],
        size=_whole(line["size"]),
        form=line["form"],
        iteration=_whole(line["iteration"]),
        warmup={"true": True, "false": False}[line["warmup"]],
        at=moment_of(line["at"]),
        reason=line["reason"] or None,
        rows=_whole(line["rows"]) if line["rows"] else None,
        **numbers,
        **documents,
    )


def _whole(text: str) -> int:
    value = int(text) if len(text) < 20 else 2**63
    if not 0 <= value < 2**63:
        raise ValueError(f"{text[:40]!r} is not a valid count")
    return value


def dictionary() -> str:
    """The data dictionary of every table, as Markdown."""
    samples = described(
        "samples.csv, samples.parquet",
        "A line for each iteration, warm-ups and attempts that did not count included. Analysed are lines "
        "with attempt_outcome valid, warmup false and no reason.",
        COLUMNS,
    )
    intro = (
        "# Columns of a run's tables\n\n"
        "Nothing is rounded. An empty field means: not known, or missing; never zero. Text that a "
        "spreadsheet would run as a formula has an apostrophe before it. The archive of `vnuma export` "
        "holds these files; `vnuma results RUN --format csv --table NAME` prints them.\n\n"
        'In Python: `import vnuma; run = vnuma.open("quick.1")`, or `vnuma.open("quick.1.vnuma.zip")`, '
        "then `run.samples()`, `run.results()`, "
        "`run.verdicts()`, `run.figures()` and `run.waits()` are pandas frames, "
        '`run.arrow("samples")` and so on Arrow tables, `run.document()` is the JSON document. Nothing is '
        "escaped there, and a missing number is NaN. Pandas and Arrow are extras, and so is "
        "samples.parquet in the archive: `pip install pandas pyarrow`. "
        "[A notebook](../notebook.ipynb) shows how.\n"
    )
    return "\n".join([intro, *(table.dictionary for table in TABLES.values()), samples])


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


def _batches(rows: Iterator[Values]) -> Iterator[list[Values]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch
