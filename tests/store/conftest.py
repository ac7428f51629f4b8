"""Fixtures: the same store tests on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgresql import Cluster
from vnuma.store.open import Store, default_url, open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, on each database in turn."""
    if request.param == "sqlite":
        return default_url(tmp_path)
    server: Cluster = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def store(url: str) -> Store:
    """A fresh, empty store on each database in turn."""
    return open_store(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite store that does not exist yet."""
    return default_url(tmp_path)
