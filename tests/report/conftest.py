"""A store of its own for each test of the reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.build import Story, build
from vnuma.report.model import LoadedRun, load_run
from vnuma.store.open import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty SQLite store."""
    return open_store(f"sqlite:///{tmp_path / 'vnuma.db'}")


@pytest.fixture
def loaded(store: Store) -> Callable[[Story], LoadedRun]:
    """Write a run's story into the store and load it as reports do."""

    def load(story: Story) -> LoadedRun:
        return load_run(store, build(store, story).name)

    return load
