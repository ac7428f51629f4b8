"""Waits are differences of two readings."""

from __future__ import annotations

from vnuma.sqlserver.client.execution import Wait, difference


def test_only_what_changed_is_kept() -> None:
    """A wait type counts for what was added between the readings; a new one counts whole."""
    before = {"ASYNC_NETWORK_IO": Wait(10, 100, 5), "SOS_SCHEDULER_YIELD": Wait(1, 1, 1)}
    after = {
        "ASYNC_NETWORK_IO": Wait(15, 180, 6),
        "SOS_SCHEDULER_YIELD": Wait(1, 1, 1),
        "MEMORY_ALLOCATION_EXT": Wait(2, 3, 0),
    }

    assert difference(before, after) == {
        "ASYNC_NETWORK_IO": {"tasks": 5, "wait_ms": 80, "signal_ms": 1},
        "MEMORY_ALLOCATION_EXT": {"tasks": 2, "wait_ms": 3, "signal_ms": 0},
    }


def test_unknown_waits_stay_unknown() -> None:
    """A server without the view waited for something all the same: the answer is not `nothing`."""
    assert difference(None, {}) is None
    assert difference({}, None) is None
    assert difference({}, {}) == {}
