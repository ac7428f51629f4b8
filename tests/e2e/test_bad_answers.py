"""A proxy before vCenter that turns bad for a while: it costs time, no VM and no exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import settings_now
from tests.support.proxy import proxy_before


@pytest.mark.parametrize("kind", [pytest.param("page with 200", marks=pytest.mark.long), "cut short"])
def test_restoring_continues_when_the_answers_are_vcenters_again(
    tmp_path: Path, lab: LabFactory, kind: str
) -> None:
    """Struck while shaping and while restoring: both continue, and the VM is restored."""
    running = lab()
    before = settings_now(running)
    with proxy_before(running, tmp_path) as proxy:
        steps = Steps.prepared(tmp_path / "a", running, vcenter=proxy.vcenter)
        context = steps.take()
        proxy.turn(kind, 1, at="ReconfigVM_Task")
        steps.shape(context)
        proxy.turn(kind, 1, at="PowerOnVM_Task")

        done = steps.restore()

        assert proxy.spoiled == 2
    assert done.equal == done.settings
    assert settings_now(running) == before
