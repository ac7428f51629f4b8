"""What tests of the engine start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.build import new_run
from tests.support.stores import new_store
from vnuma.store.open import Store
from vnuma.store.rows import Run


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return new_store(tmp_path / "vnuma.db")


@pytest.fixture
def run(store: Store) -> Run:
    """A run that has not begun."""
    return new_run(store)
