"""A proxy before vCenter that turns bad for a while: it costs time, no VM and no exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import settings_now
from tests.support.proxy import proxy_before
from vnuma.engine.access.context import VmContext
from vnuma.engine.restore import restore
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import NotAtBaseline


@pytest.mark.parametrize("kind", ["page with 200", "cut short"])
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


@pytest.mark.parametrize("where", ["_advance_token", "_give_up"])
def test_a_bug_while_one_vm_is_restored_keeps_no_other_from_it(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The first VM is named as possibly changed, with the bug; the second one is restored."""
    small = {"memory_gb": 32}
    running = lab(vms=[small | {"name": "sql16"}, small | {"name": "sql17"}])
    before = settings_now(running, "sql17")
    steps = Steps.prepared(tmp_path / "a", running, vms=["sql16", "sql17"])
    contexts = [steps.take(), steps.take("sql17")]
    steps.shape(contexts[1])

    genuine = getattr(restore, where)

    def unless_sql16(context: VmContext, *given: object) -> object:
        if context.vm.name == "sql16":
            raise AttributeError("nobody foresaw this")
        return genuine(context, *given)

    monkeypatch.setattr(restore, where, unless_sql16)

    restored, problems = restore_vms(steps.work)

    assert [done.vm for done in restored] == ["sql17"]
    assert settings_now(running, "sql17") == before
    (away,) = problems
    assert isinstance(away, NotAtBaseline)
    assert "sql16 may not be at its baseline" in str(away)
    assert isinstance(away.bug, AttributeError)
