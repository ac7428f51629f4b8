"""The dataset: made once, verified, dropped, and never in a database of somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.sqlserver.support import SMALL, LabFactory, listening, vm
from vnuma.errors import InputError
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import fetch, run, value
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.database.ownership import ForeignDatabase


@pytest.fixture
def clean(connection: pyodbc.Connection) -> Iterator[pyodbc.Connection]:
    """A connection to a server without the dataset."""
    dataset.drop(connection, SMALL.database)
    yield connection
    dataset.drop(connection, SMALL.database)


def test_preparing_twice_changes_nothing_the_second_time(clean: pyodbc.Connection) -> None:
    """The rows and checksums of the second call are those of the first."""
    first = dataset.prepare(clean, SMALL)
    second = dataset.prepare(clean, SMALL)

    assert (first.changed, second.changed) == (True, False)
    assert first.generated
    assert first.tables == second.tables
    assert first.tables["Production.TransactionHistory"].rows == 300
    assert first.tables["Sales.SalesOrderDetail"].rows == 200
    assert first.max_size == 200


def test_generated_rows_are_the_same_each_time(clean: pyodbc.Connection) -> None:
    """Two newly created datasets have the same checksums, so runs on them can be compared."""
    first = dataset.prepare(clean, SMALL)
    dataset.drop(clean, SMALL.database)

    assert dataset.prepare(clean, SMALL).tables == first.tables


def test_rows_beyond_one_chunk_are_generated(clean: pyodbc.Connection) -> None:
    """The paper's row counts take two INSERTs a table; keys stay unique across them."""
    facts = dataset.prepare(clean, DatasetSpec())

    assert facts.tables["Production.TransactionHistory"].rows == 113_443
    assert facts.tables["Sales.SalesOrderDetail"].rows == 121_317


def test_another_wish_makes_the_dataset_anew(clean: pyodbc.Connection) -> None:
    """The number of rows belongs to what the marker records."""
    dataset.prepare(clean, SMALL)
    other = replace(SMALL, sales_order_detail_rows=100)

    facts = dataset.prepare(clean, other)

    assert facts.changed
    assert facts.tables["Sales.SalesOrderDetail"].rows == 100


def test_lost_rows_are_noticed_and_made_again(clean: pyodbc.Connection) -> None:
    """Verification fails on a changed table, and preparing puts it right."""
    dataset.prepare(clean, SMALL)
    run(clean, f"USE [{SMALL.database}]")
    run(clean, "DELETE FROM Sales.SalesOrderDetail WHERE SalesOrderDetailID = 7")
    run(clean, "USE [master]")

    with pytest.raises(ServerError):
        dataset.verify(clean, SMALL)
    assert dataset.prepare(clean, SMALL).changed
    assert dataset.verify(clean, SMALL).tables["Sales.SalesOrderDetail"].rows == 200


def test_tables_are_memory_optimised(clean: pyodbc.Connection) -> None:
    """An ordinary table of the same name would measure something else."""
    dataset.prepare(clean, SMALL)
    run(clean, f"USE [{SMALL.database}]")

    rows = fetch(clean, "SELECT name, is_memory_optimized, durability_desc FROM sys.tables")

    kinds = {name: (bool(memory), durability) for name, memory, durability in rows}
    assert kinds["TransactionHistory"] == (True, "SCHEMA_AND_DATA")
    assert kinds["SalesOrderDetail"] == (True, "SCHEMA_AND_DATA")


def test_a_foreign_database_is_neither_written_nor_dropped(connection: pyodbc.Connection) -> None:
    """A database of that name that vnuma did not create stays as it is."""
    run(connection, "CREATE DATABASE [payroll]")
    try:
        for action in (dataset.prepare, dataset.verify):
            with pytest.raises(ForeignDatabase):
                action(connection, replace(SMALL, database="payroll"))
        with pytest.raises(ForeignDatabase):
            dataset.drop(connection, "payroll")
        assert value(connection, "SELECT state_desc FROM sys.databases WHERE name = ?", "payroll") == "ONLINE"
        run(connection, "USE [payroll]")
        assert fetch(connection, "SELECT name FROM sys.tables") == []
    finally:
        run(connection, "USE [master]")
        run(connection, "DROP DATABASE [payroll]")


@pytest.mark.parametrize("name", ["master", "MSDB", "tempdb", "model"])
def test_system_databases_are_refused(connection: pyodbc.Connection, name: str) -> None:
    """Whatever they may contain."""
    with pytest.raises(ForeignDatabase, match="system database"):
        dataset.drop(connection, name)


def test_dropping_what_is_not_there_is_no_error(clean: pyodbc.Connection) -> None:
    """Cleaning up twice is as good as once."""
    dataset.prepare(clean, SMALL)

    assert dataset.drop(clean, SMALL.database) is True
    assert dataset.drop(clean, SMALL.database) is False


def test_dropping_ends_connections_that_hold_the_database(
    clean: pyodbc.Connection, server: SqlServer
) -> None:
    """A connection forgotten by a dead process does not keep the database alive."""
    dataset.prepare(clean, SMALL)
    with connect(server, SMALL.database) as other:
        fetch(other, "SELECT item, value FROM dbo.vnuma_marker")

        assert dataset.drop(clean, SMALL.database) is True


@pytest.mark.parametrize("source", ["master", "VNUMA_STUDY"], ids=["without tables", "the database itself"])
def test_a_source_that_cannot_be_copied_is_an_input_error(clean: pyodbc.Connection, source: str) -> None:
    """Nothing is written to an AdventureWorks of the user's."""
    with pytest.raises(InputError):
        dataset.prepare(clean, replace(SMALL, source=source))


def test_a_copy_has_its_sources_rows_and_leaves_no_staging_table(lab: LabFactory) -> None:
    """Two steps, because no statement may name another database and a memory-optimised table."""
    running = lab(vms=[vm(sql={"adventure_works": True})])
    spec = DatasetSpec(source="AdventureWorks2019")
    with connect(listening(running)) as connection:
        facts = dataset.prepare(connection, spec)
        again = dataset.prepare(connection, spec)
        source = value(
            connection, "SELECT COUNT_BIG(*) AS n FROM [AdventureWorks2019].Sales.SalesOrderDetail"
        )
        run(connection, f"USE [{spec.database}]")
        tables = {str(name) for (name,) in fetch(connection, "SELECT name FROM sys.tables")}

    assert not facts.generated
    assert facts.tables["Sales.SalesOrderDetail"].rows == source
    assert tables == {"vnuma_marker", "TransactionHistory", "SalesOrderDetail"}
    assert again.changed is False


def test_the_server_refuses_a_copy_in_one_step(lab: LabFactory) -> None:
    """Message 41317: the reason for the staging table."""
    running = lab(vms=[vm(sql={"adventure_works": True})])
    with connect(listening(running)) as connection:
        dataset.prepare(connection, SMALL)
        run(connection, f"USE [{SMALL.database}]")

        with pytest.raises(ServerError) as caught:
            run(
                connection,
                "INSERT INTO Production.TransactionHistory SELECT * "
                "FROM [AdventureWorks2019].Production.TransactionHistory",
            )

    assert caught.value.native == 41317
