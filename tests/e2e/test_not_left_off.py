"""A VM that a run shut down is on again at the end, or was never shut down: whoever else works on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import change_by_hand, settings_now
from vnuma.domain.study.study import PowerRules
from vnuma.domain.vm.setting import Power
from vnuma.engine.run.progress import progress_of
from vnuma.errors import HostNotReady, NotAtBaseline, RestoreConflict, ShutdownTimeout
from vnuma.store.rows import RestoreOutcome


def test_what_others_write_after_a_shutdown_does_not_end_restoring(tmp_path: Path, lab: LabFactory) -> None:
    """hostd, backups and Tools write keys then: the VM is read and compared again, and retried."""
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running)
    running.fault("keys_written", times=3)

    done = steps.restore()

    assert done.equal == done.settings
    assert settings_now(running) == before
    assert len([event for event in running.events if event["event"] == "keys_written"]) == 3


def test_writes_that_never_end_are_no_conflict_and_the_vm_is_on(tmp_path: Path, lab: LabFactory) -> None:
    """Nobody changed a setting: it is said that it failed, and the VM boots in the shape that it has."""
    running = lab()
    steps = Steps.shaped(tmp_path / "a", running)
    running.fault("keys_written", times=0)

    with pytest.raises(NotAtBaseline) as told:
        steps.restore()

    assert type(told.value) is NotAtBaseline
    assert settings_now(running)["power"] == "poweredOn"
    assert steps.vm.restore_outcome is RestoreOutcome.FAILED


def test_a_conflict_found_while_the_vm_is_off_leaves_it_on(tmp_path: Path, lab: LabFactory) -> None:
    """The setting stays as somebody else left it, and the VM that the run shut down is on again."""
    running = lab()
    steps = Steps.shaped(tmp_path / "a", running)
    change_by_hand(running, "sql16", numCPUs=8, numCoresPerSocket=8)

    with pytest.raises(RestoreConflict):
        steps.restore()

    now = settings_now(running)
    assert (now["power"], now["vcpus"]) == ("poweredOn", 8)
    assert steps.vm.restore_outcome is RestoreOutcome.CONFLICT


def test_a_power_on_that_is_refused_is_tried_again(tmp_path: Path, lab: LabFactory) -> None:
    """The error says what vSphere refused, and the VM is on."""
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running)
    running.fault("power_on_refused")

    with pytest.raises(NotAtBaseline):
        steps.restore()

    assert settings_now(running)["power"] == "poweredOn"
    steps.restore()
    assert settings_now(running) == before


def slow_guest(tmp_path: Path, lab: LabFactory, seconds: float, late_s: float) -> tuple[LabHandle, Steps]:
    """A run on a guest that may shut down in a second, and is watched for `late_s` more."""
    running = lab(boot={"tools_seconds": 0.3, "sql_seconds": 0.1, "shutdown_seconds": seconds})
    power = {"shutdown_timeout_s": 1, "late_shutdown_s": late_s}
    return running, Steps.prepared(tmp_path / "a", running, power=power)


def test_a_cell_goes_on_when_its_guest_has_shut_down_late(tmp_path: Path, lab: LabFactory) -> None:
    """The VM is shaped as soon as it is off, and restored after another late shutdown."""
    running, steps = slow_guest(tmp_path, lab, 3.0, 60)
    before = settings_now(running)

    steps.shape(steps.take())
    with steps.store.read() as connection:
        shown = progress_of(connection, steps.run.name).vms[0].step

    assert settings_now(running)["power"] == "poweredOff"
    assert shown != "shutdown"
    steps.restore()
    assert settings_now(running) == before


def test_a_restore_watches_a_late_shutdown_and_powers_on(tmp_path: Path, lab: LabFactory) -> None:
    """Restored while its guest still shut down, the VM would be off a moment later."""
    running, steps = slow_guest(tmp_path, lab, 3.5, 0.5)
    with pytest.raises(ShutdownTimeout):
        steps.shape(steps.take())
    steps = replace(steps, study=steps.study.model_copy(update={"power": PowerRules(late_shutdown_s=60)}))

    done = steps.restore()

    assert done.power is Power.ON
    assert [event for event in running.events if event["event"] == "power_off"]
    assert settings_now(running)["power"] == "poweredOn"


def test_a_shutdown_that_does_not_end_leaves_the_vm_named(tmp_path: Path, lab: LabFactory) -> None:
    """The VM will go off: the error says so and which command powers it on, and that command does."""
    running, steps = slow_guest(tmp_path, lab, 6.0, 0.5)
    with pytest.raises(ShutdownTimeout):
        steps.shape(steps.take())

    with pytest.raises(NotAtBaseline) as told:
        steps.restore()

    assert str(told.value.fix).endswith("vnuma restore sql16")
    assert steps.vm.restore_outcome is RestoreOutcome.FAILED
    running.wait_for("power_off")
    steps.restore()
    assert settings_now(running)["power"] == "poweredOn"


@pytest.mark.parametrize("kind", ["host_maintenance", "host_disconnected"])
def test_a_host_is_looked_at_again_before_each_shutdown(tmp_path: Path, lab: LabFactory, kind: str) -> None:
    """The VM runs on, unchanged: on that host it would have stayed off."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    running.fault(kind)
    running.wait_for({"host_maintenance": "host_entering_maintenance"}.get(kind, kind))

    with pytest.raises(HostNotReady):
        steps.shape(context)
    steps.restore()

    assert settings_now(running) == before
    assert not [event for event in running.events if event["event"] == "power_off"]


def test_a_hard_power_off_happens_only_when_the_study_says_so(tmp_path: Path, lab: LabFactory) -> None:
    """Then the run continues, and the VM is restored."""
    running = lab()
    before = settings_now(running)
    power = {"shutdown_timeout_s": 1, "on_shutdown_timeout": "power_off"}
    steps = Steps.prepared(tmp_path / "a", running, power=power)
    running.fault("shutdown_never", times=0)

    steps.shape(steps.take())
    assert settings_now(running)["power"] == "poweredOff"
    steps.restore()

    assert settings_now(running) == before
