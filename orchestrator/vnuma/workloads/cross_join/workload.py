"""The paper's workload: a cross join of TOP (n) rows of two tables."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial

from vnuma.domain.study.study import Dataset
from vnuma.errors import InputError
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.database import dataset as tables
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.workloads.cross_join.settings import CrossJoin, Form
from vnuma.workloads.interface import (
    Bench,
    Document,
    Query,
    SystemUnderTest,
    Workload,
    without_memory_optimised,
)
from vnuma.workloads.query_bench import dataset_bench

SENTINEL_SIZE = 500

_TEMPORARY = "#vnuma_cross"
_LEFT = "SELECT TOP ({size}) * FROM Production.TransactionHistory ORDER BY TransactionID"
_RIGHT = "SELECT TOP ({size}) * FROM Sales.SalesOrderDetail ORDER BY SalesOrderID, SalesOrderDetailID"
# Both tables have ProductID and ModifiedDate, and a table cannot have a column twice (message 2705).
_ALIASED = (
    "a.TransactionID, a.ProductID, a.ReferenceOrderID, a.ReferenceOrderLineID, a.TransactionDate, "
    "a.TransactionType, a.Quantity, a.ActualCost, a.ModifiedDate, "
    "b.SalesOrderID, b.SalesOrderDetailID, b.CarrierTrackingNumber, b.OrderQty, "
    "b.ProductID AS DetailProductID, b.SpecialOfferID, b.UnitPrice, b.UnitPriceDiscount, b.LineTotal, "
    "b.rowguid, b.ModifiedDate AS DetailModifiedDate"
)
# A checksum over both sides of each pair cannot be pushed below the join; COUNT alone could be.
_AGGREGATE = (
    "COUNT_BIG(*) AS joined_rows, "
    "SUM(CAST(CHECKSUM(a.TransactionID, b.SalesOrderDetailID) AS bigint)) AS pair_checksum"
)


def cross_join(size: int, form: Form, *, maxdop: int = 1, spool: str = "allowed") -> Query:
    """The cross join of `size` x `size` rows in one of its three forms.

    `client` streams every row, `server` returns one aggregate over all pairs, `into` writes them to a
    temporary table. Ordering by key makes the rows the same in each run. `maxdop` 0 keeps the server's own;
    `spool` `avoided` forbids reading the inner side from a spool in tempdb.
    """
    left, right = _LEFT.format(size=size), _RIGHT.format(size=size)
    source = f"FROM ({left}) AS a CROSS JOIN ({right}) AS b{_hints(maxdop, spool)}"
    query = partial(Query, expected_rows=size * size, workload="cross_join", size=size, form=form)
    if form == "client":
        return query(sql=f"SELECT a.*, b.* {source}", rows_from="rowcount", statements="one")
    if form == "server":
        return query(sql=f"SELECT {_AGGREGATE} {source}", rows_from="result")
    return query(
        sql=f"SELECT {_ALIASED} INTO {_TEMPORARY} {source}",
        rows_from="rowcount",
        setup=(f"IF OBJECT_ID(N'tempdb..{_TEMPORARY}') IS NOT NULL DROP TABLE {_TEMPORARY}",),
        cleanup=(f"DROP TABLE {_TEMPORARY}",),
    )


def cross_join_queries(workload: CrossJoin) -> tuple[Query, ...]:
    """Every size in every form, in the order of the study."""
    return tuple(
        cross_join(size, form, maxdop=workload.maxdop, spool=workload.spool)
        for size in workload.sizes
        for form in workload.forms
    )


def refuse_too_large(workload: CrossJoin, smaller_table_rows: int) -> None:
    """Raise InputError for sizes beyond the smaller table: TOP would silently give fewer rows."""
    for size in workload.sizes:
        if size > smaller_table_rows:
            raise InputError(
                f"Size {size:,} is more rows than the smaller table has ({smaller_table_rows:,}).",
                fix=f"Use sizes of at most {smaller_table_rows}, or a larger dataset.",
            )


def _prepare(system: SystemUnderTest) -> Document:
    """Create the tables once; count and checksum them."""
    wanted = DatasetSpec(**system.dataset.model_dump(exclude={"drop_after"}))
    with connect(system.server) as connection:
        prepared = tables.prepare(connection, wanted)
    refuse_too_large(system.settings, prepared.max_size)
    return asdict(prepared)


def _sentinel(settings: CrossJoin, dataset: Dataset) -> Query:
    """The server form with 500 rows a side, or as many as there are, whatever the study measures."""
    size = min(SENTINEL_SIZE, dataset.smaller_table_rows or SENTINEL_SIZE)
    return cross_join(size, "server", maxdop=settings.maxdop, spool=settings.spool)


def _bench(system: SystemUnderTest) -> AbstractContextManager[Bench]:
    """Every size in every form, on the study's database."""
    return dataset_bench(system, cross_join_queries(system.settings))


def _hints(maxdop: int, spool: str) -> str:
    hints = [f"MAXDOP {maxdop}"] if maxdop else []
    if spool == "avoided":
        hints.append("NO_PERFORMANCE_SPOOL")
    return f" OPTION ({', '.join(hints)})" if hints else ""


WORKLOAD = Workload(
    settings=CrossJoin,
    obstacles=lambda connection, *_: without_memory_optimised(connection),
    prepare=_prepare,
    sentinel=_sentinel,
    bench=_bench,
)
