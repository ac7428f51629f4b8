"""A VM that a run shut down is on again at the end, or was never shut down: whoever else works on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import change_by_hand, settings_now
from vnuma.errors import HostNotReady, NotAtBaseline, PreflightBlocked, RestoreConflict
from vnuma.store.states import RestoreOutcome


def test_what_others_write_after_a_shutdown_does_not_end_putting_back(
    tmp_path: Path, lab: LabFactory
) -> None:
    """hostd, backups and Tools write keys then: read anew, compared anew, tried again."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    running.fault("keys_written", times=3)

    done = steps.put_back()

    assert done.equal == done.settings
    assert settings_now(running) == before
    assert len([event for event in running.events if event["event"] == "keys_written"]) == 3


def test_writes_that_never_end_are_no_conflict_and_the_vm_is_on(tmp_path: Path, lab: LabFactory) -> None:
    """Nobody changed a setting: it is said that it failed, and the VM boots in the shape that it has."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    running.fault("keys_written", times=0)

    with pytest.raises(NotAtBaseline, match=r"powered on in the shape that it has") as told:
        steps.put_back()

    assert not isinstance(told.value, RestoreConflict)
    assert settings_now(running)["power"] == "poweredOn"
    assert steps.vm.restore_outcome is RestoreOutcome.FAILED


def test_a_conflict_found_while_the_vm_is_off_leaves_it_on(tmp_path: Path, lab: LabFactory) -> None:
    """The setting stays as somebody else left it, and the VM that the run shut down is on again."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    change_by_hand(running, "sql16", numCPUs=8, numCoresPerSocket=8)

    with pytest.raises(RestoreConflict, match="numCPUs"):
        steps.put_back()

    now = settings_now(running)
    assert (now["power"], now["vcpus"]) == ("poweredOn", 8)
    assert steps.vm.restore_outcome is RestoreOutcome.CONFLICT


def test_a_power_on_that_is_refused_is_tried_again(tmp_path: Path, lab: LabFactory) -> None:
    """The error says what vSphere refused, and the VM is on."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    steps.shape(steps.take())
    running.fault("power_on_refused")

    with pytest.raises(NotAtBaseline, match="could not power on sql16"):
        steps.put_back()

    assert settings_now(running)["power"] == "poweredOn"
    steps.put_back()
    assert settings_now(running) == before


HOSTS = {"host_maintenance": "entering maintenance mode", "host_disconnected": "disconnected"}


@pytest.mark.parametrize("kind", HOSTS)
def test_a_host_that_powers_nothing_on_blocks_a_study(tmp_path: Path, lab: LabFactory, kind: str) -> None:
    """Named with its state, before the first change."""
    running = lab()
    running.fault(kind)
    running.wait_for({"host_maintenance": "host_entering_maintenance"}.get(kind, kind))

    with pytest.raises(PreflightBlocked, match=rf"P36.*esx01 is {HOSTS[kind]}"):
        Steps.prepared(tmp_path / "a", running)


@pytest.mark.parametrize("kind", HOSTS)
def test_a_host_is_looked_at_again_before_each_shutdown(tmp_path: Path, lab: LabFactory, kind: str) -> None:
    """The VM runs on, unchanged: on that host it would have stayed off."""
    running = lab()
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    running.fault(kind)
    running.wait_for({"host_maintenance": "host_entering_maintenance"}.get(kind, kind))

    with pytest.raises(HostNotReady, match=HOSTS[kind]):
        steps.shape(context)
    steps.put_back()

    assert settings_now(running) == before
    assert not [event for event in running.events if event["event"] == "power_off"]
