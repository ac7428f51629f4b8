"""What a run's supervisor learns from the events of its play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vnuma.engine.run.supervise import Played
from vnuma.errors import StoreAway, StoreError, StoreUnwritable

FULL = {
    "error": "StoreUnwritable",
    "msg": "The store's disk is full: here.\n  Free some space.",
    "failed": True,
}
AWAY = {"error": "StoreAway", "msg": "The store here does not answer.", "failed": True}


def heard(*results: Mapping[str, Any] | None) -> StoreError | None:
    """The store's last error, after events with these results of tasks."""
    listener = Played()
    for result in results:
        listener.take({"event_data": {} if result is None else {"res": result}})
    return listener.unstored


@pytest.mark.parametrize(
    ("results", "kind", "fix"),
    [
        ((FULL,), StoreUnwritable, "Free some space."),
        ((AWAY, {"changed": False}), StoreAway, None),
        ((AWAY, {"changed": True}), type(None), None),
        (({"error": "SqlTimeout", "msg": "No answer."}, None), type(None), None),
    ],
)
def test_a_store_that_took_nothing_is_known_until_a_step_stored_again(
    results: tuple[Mapping[str, Any] | None, ...], kind: type, fix: str | None
) -> None:
    """With the step's own next step. Other failures of steps are the attempts' own."""
    error = heard(*results)

    assert type(error) is kind
    assert getattr(error, "fix", None) == fix


def test_the_end_of_a_plays_output_is_kept_for_its_error() -> None:
    """In memory, and no more than that: a restore must not need disk space."""
    listener = Played()

    kept = [listener.take({"stdout": line * 3000}) for line in "ab"]

    assert kept == [False, False]
    assert (len(listener.output), listener.output.count("b"), listener.output[-1]) == (4000, 3000, "\n")
