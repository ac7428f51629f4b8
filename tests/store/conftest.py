"""Fixtures: the same store tests on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgresql import Cluster
from tests.support.stores import new_store
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.place import parse_place


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where no store exists yet, on each database in turn; `store` is an empty one."""
    exists = "store" in request.fixturenames
    if request.param == "sqlite":
        url = default_url(tmp_path)
        if exists:
            new_store(parse_place(url).path)
        return url
    server: Cluster = request.getfixturevalue("postgresql")
    return server.new_store() if exists else server.new_database()


@pytest.fixture
def store(url: str) -> Store:
    """A fresh, empty store on each database in turn."""
    return open_store(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite store that does not exist yet."""
    return default_url(tmp_path)
