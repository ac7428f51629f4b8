"""A vCenter that fails for a while costs time, no cell; a fault that stays costs one cell, not the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.lease.vcenter_retry import RETRY
from vnuma.engine.run.progress import Progress
from vnuma.engine.run.supervise import restore_vms
from vnuma.errors import NotAtBaseline
from vnuma.store.rows import RestoreOutcome

TRANSIENT: list[dict[str, Any]] = [
    {"kind": "session_expired"},
    {"kind": "vcenter_restart", "seconds": 1.5},
    {"kind": "task_in_progress"},
    {"kind": "host_communication"},
    {"kind": "invalid_state"},
    {"kind": "unavailable"},
    {"kind": "answer_lost"},
]


def in_fast_suite(fault: dict[str, Any]) -> Any:
    """A fault as a test's parameter: the two that differ most in what the client sees, the rest when long."""
    kind = str(fault["kind"])
    fast = kind in ("session_expired", "answer_lost")
    return pytest.param(fault, id=kind, marks=() if fast else pytest.mark.long)


def power_ons(lab: LabHandle) -> int:
    """How often the lab's VM was powered on since it runs."""
    return len([event for event in lab.events if event["event"] == "boot"]) - 1


@pytest.mark.parametrize("fault", [in_fast_suite(fault) for fault in TRANSIENT])
def test_each_write_of_a_cell_survives_what_passes_and_is_made_once(
    tmp_path: Path, lab: LabFactory, fault: dict[str, Any]
) -> None:
    """Struck at the reconfigure, at the power-on and at restoring: one boot, and the VM as it was."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()

    running.fault(**fault)
    attempt = steps.shape(context)
    running.fault(**fault)
    boot_cell(context, attempt)
    ready_cell(context, attempt)
    assert power_ons(running) == 1
    running.fault(**fault)
    restored = steps.restore()

    assert restored.equal == restored.settings
    assert settings_now(running) == before
    told = dict.fromkeys((fact.key, fact.attempt_id is not None) for fact in steps.facts(RETRY))
    assert list(told) == [("shutdown", True), ("power_on", True), ("restoring", False)]


def test_restoring_without_vcenter_shows_each_try_and_ends_unreachable(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Which VM, why, the next attempt and the last; nobody changed it, so it is not a conflict."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running, power={"vcenter_retry_s": 7})
    context = steps.take()
    steps.shape(context)
    running.fault("unavailable", times=0, method="RetrievePropertiesEx")
    seen: list[Progress] = []

    _, problems = restore_vms(steps.work, seen.append)

    assert len({progress.vms[0].step for progress in seen}) > 2
    assert [type(problem) for problem in problems] == [NotAtBaseline]
    assert steps.vm.restore_outcome is RestoreOutcome.UNREACHABLE
