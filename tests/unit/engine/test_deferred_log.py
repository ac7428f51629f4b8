"""A log that is owed, and a store that cannot tell of it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from tests.store.build import new_run
from vnuma.engine.audit.log import Journal
from vnuma.engine.cell import evidence
from vnuma.errors import StoreError
from vnuma.store.open import Store

NOBODY: Any = None
"""No session is needed where nothing is fetched."""


def test_a_store_that_fails_does_not_keep_a_vm_from_being_restored(store: Store) -> None:
    """Restoring loses the evidence and nothing else; a cell ends on it, as on every write that fails."""
    run = new_run(store)
    with store.write() as connection:
        connection.execute(text("DROP TABLE fact"))
    lost: list[StoreError] = []

    evidence.collect(Journal(store, "vc/1", "sql16", run, on_store_error=lost.append), NOBODY, NOBODY)
    with pytest.raises(StoreError):
        evidence.collect(Journal(store, "vc/1", "sql16", run), NOBODY, NOBODY)

    assert len(lost) == 1


def test_where_nothing_is_owed_nothing_is_asked(store: Store) -> None:
    """Neither in a run whose logs were had, nor outside a run."""
    evidence.collect(Journal(store, "vc/1", "sql16", new_run(store)), NOBODY, NOBODY)
    evidence.collect(Journal(store, "vc/1", "sql16"), NOBODY, NOBODY)
