"""A run's tables as Arrow tables and as Parquet. pyarrow is optional, since it takes 150 MB."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vnuma.errors import EnvironmentProblem
from vnuma.report.tables.tidy import Column

if TYPE_CHECKING:
    import pyarrow as pa

Values = dict[str, object]

HELP = f"{sys.executable} -m pip install pyarrow (installed by pipx: pipx inject vnuma pyarrow)"


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
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "Arrow tables and Parquet files need pyarrow, which this Python environment does not have.",
            fix=HELP,
        ) from error
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
