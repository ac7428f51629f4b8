"""Scans of more data than fits the cache: the memory distance that the paper's joins cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict

from vnuma.domain.study.study import Dataset
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import dataset as tables
from vnuma.sqlserver.database.dataset import ROWS_PER_MB, ScanSpec, committed_target_kb, scan_table
from vnuma.workloads.interface import (
    Bench,
    Document,
    Obstacle,
    Query,
    SystemUnderTest,
    Workload,
    without_memory_optimised,
)
from vnuma.workloads.query_bench import dataset_bench
from vnuma.workloads.scan_aggregate.settings import ScanAggregate

LARGEST_SHARE = 0.7
"""Largest share of SQL Server's memory for memory-optimised data, so that the rest has enough."""

# A checksum cannot be pushed below the scan. `id` and `amount` are at opposite ends of a row.
_READ = {"sparse": "CHECKSUM(id, amount)", "dense": "CHECKSUM(payload)"}


def scan(size: int, form: str, maxdop: int) -> Query:
    """One scan of the whole table of that size; it returns the number of rows that it read."""
    sql = (
        f"SELECT COUNT_BIG(*) AS read_rows, SUM(CAST({_READ[form]} AS bigint)) AS row_checksum "
        f"FROM {scan_table(size).full_name}"
    )
    hint = f" OPTION (MAXDOP {maxdop})" if maxdop else ""
    rows = size * ROWS_PER_MB
    return Query(sql + hint, rows, "result", workload="scan_aggregate", size=size, form=form)


def scan_queries(settings: ScanAggregate) -> tuple[Query, ...]:
    """Every size in every form, in the order of the study."""
    return tuple(scan(size, form, settings.maxdop) for size in settings.sizes for form in settings.forms)


def _obstacles(
    connection: pyodbc.Connection, settings: ScanAggregate, dataset: Dataset
) -> Iterator[Obstacle]:
    """No memory-optimised tables, or too little memory for these."""
    yield from without_memory_optimised(connection)
    wanted, most = sum(settings.sizes), committed_target_kb(connection) / 1024 * LARGEST_SHARE
    if wanted > most:
        yield Obstacle(
            f"workload.sizes need {wanted:,} MB of memory-optimised tables; SQL Server may use "
            f"{most / LARGEST_SHARE:,.0f} MB in all, and {most:,.0f} MB of that for them.",
            "Use smaller sizes, or give SQL Server more memory (max server memory, the VM's size).",
        )


def _prepare(system: SystemUnderTest) -> Document:
    """Create the tables once; count and checksum them."""
    wanted = ScanSpec(database=system.dataset.database, sizes_mb=system.settings.sizes)
    with connect(system.server) as connection:
        return asdict(tables.prepare(connection, wanted))


def _sentinel(settings: ScanAggregate, dataset: Dataset) -> Query:
    """The sparse scan of the smallest table."""
    return scan(min(settings.sizes), "sparse", settings.maxdop)


def _bench(system: SystemUnderTest) -> AbstractContextManager[Bench]:
    """Every size in every form, on the study's database."""
    return dataset_bench(system, scan_queries(system.settings))


WORKLOAD = Workload(
    settings=ScanAggregate, obstacles=_obstacles, prepare=_prepare, sentinel=_sentinel, bench=_bench
)
