"""Which VM, whose mark, whose values: a run touches and puts back nothing but what is its own."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import settings_now
from vnuma.engine.recover import put_back_dead

TWO = [{"name": "sql16"}, {"name": "other"}]


def test_a_vm_is_put_back_by_its_identity_and_not_by_its_name(tmp_path: Path, lab: LabFactory) -> None:
    """An inventory whose name stands for another VM by now: that VM is left alone, ours is put back."""
    running = lab(vms=TWO)
    before = {name: settings_now(running, name) for name in ("sql16", "other")}
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    elsewhere = steps.target.model_copy(update={"vm": running.vms["other"].path})

    put_back_dead(steps.store, {"sql16": elsewhere})

    assert {name: settings_now(running, name) for name in ("sql16", "other")} == before
