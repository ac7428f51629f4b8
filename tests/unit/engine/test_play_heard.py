"""What a run's supervisor learns from the events of its play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vnuma.engine.run.supervise import _PlayOutput
from vnuma.errors import StoreAway, StoreError, StoreUnwritable

FULL = {
    "error": "StoreUnwritable",
    "msg": "The store's disk is full: here.\n  Free some space.",
    "failed": True,
}
AWAY = {"error": "StoreAway", "msg": "The store here does not answer.", "failed": True}


def heard(*results: Mapping[str, Any] | None) -> StoreError | None:
    """The store's last error, after events with these results of tasks."""
    listener = _PlayOutput()
    for result in results:
        listener.take({"event_data": {} if result is None else {"res": result}})
    return listener.unstored


@pytest.mark.parametrize(
    ("results", "kind"),
    [
        ((FULL,), StoreUnwritable),
        ((AWAY, {"changed": False}), StoreAway),
        ((AWAY, {"changed": True}), type(None)),
        (({"error": "SqlTimeout", "msg": "No answer."}, None), type(None)),
    ],
)
def test_a_store_that_took_nothing_is_known_until_a_step_stored_again(
    results: tuple[Mapping[str, Any] | None, ...], kind: type
) -> None:
    """Other failures of steps are the attempts' own."""
    assert type(heard(*results)) is kind


def test_the_store_s_error_says_the_same_as_in_the_step() -> None:
    """What happened, and what to do next."""
    error = heard(FULL)
    assert error
    assert (error.what, error.fix) == ("The store's disk is full: here.", "Free some space.")
