"""Fixtures: the same store tests on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store import cluster
from vnuma.store.open import Store, default_url, open_store


@pytest.fixture(scope="session")
def postgresql() -> Iterator[cluster.Cluster]:
    """A private server. Without one the test is skipped, but fails where CI is set."""
    binaries = cluster.find_binaries()
    if binaries is None:
        reason = "no PostgreSQL server found (initdb, postgres): Debian: apt install postgresql"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    server = cluster.start(binaries)
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, on each database in turn."""
    if request.param == "sqlite":
        return default_url(tmp_path)
    server: cluster.Cluster = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def store(url: str) -> Store:
    """A fresh, empty store on each database in turn."""
    return open_store(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite store that does not exist yet."""
    return default_url(tmp_path)
