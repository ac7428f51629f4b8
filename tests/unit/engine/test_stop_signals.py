"""What repeated requests to stop do: only a person's third leaves the VMs as they are."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from vnuma.engine.run import oversight
from vnuma.engine.run.oversight import stop_signals
from vnuma.errors import Interrupted, NotAtBaseline


class _Run:
    """What `stop_signals` needs of a run."""

    name = "quick.1"
    site = None


RUN: Any = _Run()


@pytest.fixture(autouse=True)
def no_bounce(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests right after one another count."""
    monkeypatch.setattr(oversight, "_BOUNCE_S", 0.0)
    monkeypatch.setattr(oversight, "_LEAVE_S", 600.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_manager_that_asks_often_never_leaves_the_vms(number: signal.Signals) -> None:
    """It stops at once after two requests; further ones change nothing."""
    with stop_signals(RUN, ["sql16"]) as asked:
        for _ in range(5):
            signal.raise_signal(number)

    assert asked.count == 2


def _three_requests(*names: str) -> None:
    with stop_signals(RUN, names):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            signal.raise_signal(number)


def test_the_third_ctrl_c_leaves_them() -> None:
    """Exit code 7."""
    with pytest.raises(NotAtBaseline):
        _three_requests("sql16")


def test_the_third_at_a_controller_whose_vms_are_at_other_sites_leaves_none_changed() -> None:
    """No VM is said to be away from its baseline: exit code 130."""
    with pytest.raises(Interrupted):
        _three_requests()
