"""Connections to a lab's SQL Server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.sqlserver.support import SMALL, driver_of, listening
from tests.support.lab import LabHandle
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.database.dataset import DatasetSpec


@pytest.fixture(scope="module")
def server(shared_lab: LabHandle) -> SqlServer:
    """SQL Server of the module's lab, listening."""
    return listening(shared_lab)


@pytest.fixture(params=["freetds", "msodbcsql18"])
def any_server(request: pytest.FixtureRequest, shared_lab: LabHandle) -> SqlServer:
    """SQL Server of the module's lab, by each driver that is installed."""
    return listening(shared_lab, driver=driver_of(request.param))


@pytest.fixture
def connection(server: SqlServer) -> Iterator[pyodbc.Connection]:
    """A connection to master."""
    with connect(server) as opened:
        yield opened


@pytest.fixture(scope="module")
def small_dataset(server: SqlServer) -> DatasetSpec:
    """A small dataset in the module's lab, for tests that only read it."""
    spec = replace(SMALL, database="vnuma_small")
    with connect(server) as opened:
        dataset.prepare(opened, spec)
    return spec


@pytest.fixture
def study(server: SqlServer, small_dataset: DatasetSpec) -> Iterator[pyodbc.Connection]:
    """A connection to the small dataset's database."""
    with connect(server, small_dataset.database) as opened:
        yield opened
