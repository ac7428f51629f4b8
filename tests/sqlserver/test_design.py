"""What only the design rules ask of a SQL Server."""

from __future__ import annotations

import pytest

from tests.sqlserver.support import LabFactory, listening, vm
from vnuma.domain.vm.server import XtpDatabase
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.instance.server import read_sql


def test_ports_and_memory_optimised_databases_are_read(
    connection: pyodbc.Connection, small_dataset: DatasetSpec
) -> None:
    """The port setting as the registry has it; the dataset is a database without a pool of its own."""
    found = read_sql(connection)
    assert found.tcp_ports is not None
    assert found.tcp_ports.isdigit()
    assert found.xtp_databases == (XtpDatabase(small_dataset.database, None),)
    assert found.processor_groups == 1


@pytest.mark.parametrize(
    ("version", "databases", "feedback"),
    [("16.0.4085.2", [], None), ("16.0.4085.2", ["erp"], False), ("17.0.1000.7", ["erp"], True)],
)
def test_dop_feedback_is_asked_of_every_database(
    lab: LabFactory, version: str, databases: list[str], feedback: bool | None
) -> None:
    """2022 has it off unless it was turned on, 2025 on; without a database of users it is not known."""
    running = lab(vms=[vm(sql={"version": version, "use": {"log_shipped": databases}})])
    with connect(listening(running)) as connection:
        assert read_sql(connection).dop_feedback is feedback


def test_a_query_that_fails_says_why(lab: LabFactory) -> None:
    """A view without a column that is asked for leaves the rest readable, and its error is kept."""
    without = {"database_scoped_configurations": ["value"]}
    sql = {"version": "16.0.4085.2", "use": {"log_shipped": ["erp"]}}
    running = lab(vms=[vm(sql=sql)], without_columns=without)
    with connect(listening(running)) as connection:
        found = read_sql(connection)
    assert (found.dop_feedback, found.processor_groups) == (None, 1)
    assert found.unread.keys() == {"dop_feedback"}
    assert "207" in found.unread["dop_feedback"]
