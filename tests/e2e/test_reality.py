"""A study on a VM as recordings of real servers show it."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import settings_now
from vnuma.engine.restore.restore import RestorePlan


def test_a_study_of_a_used_vm_is_cut_off_and_restored(lab: LabFactory, tmp_path: Path) -> None:
    """Absent fields and stale keys are nobody's change: each cell runs, and a second restore does nothing."""
    running = lab("reality")
    before = settings_now(running, "sql16")
    arms = {"affinity": "physical_cores", "memory_reservation": "locked", "cpu_reservation": "full"}
    steps = Steps.prepared(tmp_path, running, all_arms={**arms, "latency_sensitivity": "high"})
    taken = steps.take()
    steps.measure(taken)
    steps.shape(taken)  # the controller ends here, with the VM off and changed

    steps.restore()
    after = settings_now(running, "sql16")
    assert {name: after[name] for name in before} == before
    assert steps.restoration().plan() == RestorePlan()
