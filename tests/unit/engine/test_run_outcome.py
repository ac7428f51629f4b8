"""What a run's end tells when several things went wrong."""

from __future__ import annotations

from vnuma.engine.run.run_outcome import naming_all, worst_of
from vnuma.errors import NotAtBaseline, RestoreConflict, StoreError


def test_every_vm_that_is_away_is_named() -> None:
    """One error is raised, and whoever reads it must know of each VM."""
    away = [NotAtBaseline("a is away.", fix="vnuma restore a"), RestoreConflict("b was changed.")]

    told = naming_all(away)

    assert isinstance(told, NotAtBaseline)
    assert told.exit_code == 7
    assert "a is away." in told.what
    assert "b was changed." in told.what


def test_a_vm_that_is_away_outranks_the_store() -> None:
    """Exit code 7 stands above every other."""
    assert worst_of([StoreError("full"), NotAtBaseline("a is away.")]).what == "a is away."  # type: ignore[attr-defined]
