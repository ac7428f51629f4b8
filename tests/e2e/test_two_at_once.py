"""Two processes that want one VM at once: one gets it, the other is refused, and the VM is unchanged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.looking import change_by_hand, settings_now
from vnuma.engine.lease.baseline import baseline_settings
from vnuma.engine.restore.restore import restore_target
from vnuma.engine.restore.restore_vm import Restored
from vnuma.errors import LeaseLost, VmHeld, VnumaError
from vnuma.vsphere import run_mark
from vnuma.vsphere.connect import Session, VmRef


def _between(monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], object]) -> None:
    """Somebody is quicker once: after the VM was read, before its mark is written."""
    genuine, left = run_mark.write_mark, [meddle]

    def write_mark(*given: Any) -> Any:
        while left:
            left.pop()()
        return genuine(*given)

    monkeypatch.setattr(run_mark, "write_mark", write_mark)


def test_of_two_stores_that_race_for_a_vm_one_is_refused(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 8 with who has it, although both had read the VM before anybody marked it."""
    running = lab()
    before = settings_now(running)
    quick, slow = (Steps.prepared(tmp_path / name, running) for name in ("quick", "slow"))
    _between(monkeypatch, quick.take)

    with pytest.raises(VmHeld):
        slow.take()

    assert not slow.restore().changes
    quick.restore()
    assert settings_now(running) == before


def test_what_somebody_changes_just_before_the_mark_is_part_of_the_baseline(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM is read again: the earlier values would be restored over a colleague's change."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    _between(
        monkeypatch,
        lambda: change_by_hand(running, cpuAllocation=vim.ResourceAllocationInfo(reservation=700)),
    )

    steps.shape(steps.take())

    assert baseline_settings(steps.vm)["cpuReservation"] == 700
    steps.restore()
    assert settings_now(running)["power"] == "poweredOn"
    assert settings_now(running)["cpuReservation"] == 700


def test_restores_of_one_vm_at_once_restore_it_once(tmp_path: Path, lab: LabFactory) -> None:
    """Three that start together: the VM is restored, and the others report at most that they were late."""
    count = 3
    running = lab()
    before = settings_now(running)
    steps = Steps.shaped(tmp_path / "a", running)
    contexts = [steps.free for _ in range(count)]
    ended: list[Restored | VnumaError] = []
    together = threading.Barrier(count)

    def restore(number: int) -> None:
        together.wait()
        try:
            ended.append(restore_target(contexts[number]))
        except VnumaError as error:
            ended.append(error)

    threads = [threading.Thread(target=restore, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert settings_now(running) == before
    assert any(isinstance(one, Restored) for one in ended), ended
    assert all(isinstance(one, Restored | VmHeld) for one in ended), ended
    assert steps.vm.at_baseline
    boots = [event for event in running.events if event["event"] == "boot"]
    assert len(boots) == 2


def test_a_restore_that_was_overtaken_leaves_the_mark_of_its_run(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed play's step restores the VM while the run takes it over again: it stays marked."""
    running = lab()
    steps = Steps.shaped(tmp_path / "a", running)
    genuine, left = run_mark.read_mark, [steps.take]

    def after_take_over(session: Session, ref: VmRef) -> run_mark.Mark:
        while left:
            left.pop()()
        return genuine(session, ref)

    monkeypatch.setattr(run_mark, "read_mark", after_take_over)

    with pytest.raises(LeaseLost):
        steps.restore()

    assert "small.1" in settings_now(running)["keys"]["vnuma.run"]
