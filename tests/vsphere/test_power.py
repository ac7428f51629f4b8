"""Power: off through the guest, on at a host, and the wait for the guest."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.vsphere.support import LabFactory, Login, fault, vm
from vnuma.domain.vm.setting import Power
from vnuma.errors import (
    LeaseLost,
    PowerFailed,
    QuestionPending,
    ShutdownTimeout,
    ToolsTimeout,
    VmNotFound,
)
from vnuma.vsphere import power
from vnuma.vsphere.connect import Session
from vnuma.vsphere.faults import NotNow
from vnuma.vsphere.power import power_on, shut_down, wait_for_guest
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.uptime import seconds_since_power_on
from vnuma.vsphere.wait import QUESTION, settle, wait_for, wait_for_task

LONG_S = 60.0
SHORT_S = 1.0

FAST = {"tools_seconds": 0.1, "sql_seconds": 0.1, "shutdown_seconds": 0.1}


def start(lab: LabFactory, login: Login, **scenario: Any) -> tuple[Session, Any]:
    """A lab with quick boots, and its VM."""
    session = login(lab(**{"boot": FAST, **scenario}))
    return session, find_vm(session, "sql16")


def lost_lease() -> None:
    """A fence that stops every write."""
    raise LeaseLost("another run holds sql16")


def test_a_power_cycle_goes_through_the_guest(lab: LabFactory, login: Login) -> None:
    """Off, on at the same host, Tools up: the VM ends as it began."""
    session, ref = start(lab, login)
    wait_for_guest(session, ref, timeout_s=LONG_S)
    before = read_vm(session, ref)
    shut_down(session, ref, timeout_s=LONG_S)
    assert read_vm(session, ref).power is Power.OFF

    earliest = datetime.now(UTC)
    began = power_on(session, ref, host_moid=before.host_moid)
    assert earliest <= began <= datetime.now(UTC)  # the lab's vCenter has this machine's clock

    wait_for_guest(session, ref, timeout_s=LONG_S)
    facts = read_vm(session, ref)
    assert facts.power is Power.ON
    assert facts.tools_running
    assert facts.settings == before.settings


def test_a_booting_guest_is_asked_once_its_tools_run(lab: LabFactory, login: Login) -> None:
    """A VM that has only just been powered on is shut down cleanly, not given up on."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    power_on(session, ref, host_moid=read_vm(session, ref).host_moid)
    shut_down(session, ref, timeout_s=LONG_S)
    assert read_vm(session, ref).power is Power.OFF


def test_a_vm_that_is_off_stays_off(lab: LabFactory, login: Login) -> None:
    """Shutting down a VM that is off writes nothing."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    shut_down(session, ref, timeout_s=SHORT_S, fence=lost_lease)
    assert read_vm(session, ref).power is Power.OFF


def test_a_guest_that_does_not_shut_down_is_left_running(lab: LabFactory, login: Login) -> None:
    """A guest that ignores the request is left alone by default, and the message says so."""
    session, ref = start(lab, login, faults=[fault("shutdown_never")])
    with pytest.raises(ShutdownTimeout) as caught:
        shut_down(session, ref, timeout_s=SHORT_S)
    assert caught.value.what == (
        "Windows in sql16 did not shut down in 1 s (it is on, Tools run, the guest is running); "
        "the VM is still running."
    )
    assert read_vm(session, ref).power is Power.ON


def test_tools_and_shutdown_share_one_deadline(
    lab: LabFactory, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the wait for Tools and the request took is no longer there for the shutdown."""
    session, ref = start(lab, login, faults=[fault("shutdown_never")])
    waits: list[float] = []

    def shortened(
        session: Session, ref: Any, paths: Any, ready: Any, timeout_s: float, what: str, *, vm: Any
    ) -> Any:
        waits.append(timeout_s)
        return wait_for(session, ref, paths, ready, 0.1, what, vm=vm)

    monkeypatch.setattr(power, "time", SimpleNamespace(monotonic=iter([100.0, 107.0]).__next__))
    monkeypatch.setattr(power, "wait_for", shortened)
    with pytest.raises(ShutdownTimeout):
        shut_down(session, ref, timeout_s=10.0)

    assert waits == [3.0]


def test_a_hard_power_off_happens_only_when_asked_for(lab: LabFactory, login: Login) -> None:
    """With power_off asked for, a guest that ignores the request is powered off."""
    session, ref = start(lab, login, faults=[fault("shutdown_never")])
    shut_down(session, ref, timeout_s=SHORT_S, on_timeout="power_off")
    assert read_vm(session, ref).power is Power.OFF


def test_a_guest_without_tools_cannot_be_asked(lab: LabFactory, login: Login) -> None:
    """Without running Tools there is nobody to ask: the VM runs on, and the message says why."""
    session, ref = start(lab, login, vms=[vm(power="off")], faults=[fault("tools_never")])
    power_on(session, ref, host_moid=read_vm(session, ref).host_moid)
    with pytest.raises(ShutdownTimeout):
        shut_down(session, ref, timeout_s=SHORT_S)
    assert read_vm(session, ref).power is Power.ON
    shut_down(session, ref, timeout_s=SHORT_S, on_timeout="power_off")
    assert read_vm(session, ref).power is Power.OFF


def at_the_second_look(act: Callable[[], None]) -> Callable[[], None]:
    """A fence that acts when it is asked for the second time."""
    looks = count(1)
    return lambda: act() if next(looks) == 2 else None


@pytest.mark.parametrize("hard", [False, True], ids=["asked", "powered off"])
def test_a_vm_that_goes_off_in_the_last_moment_is_off(lab: LabFactory, login: Login, hard: bool) -> None:
    """A VM that somebody else powers off just before is what was wanted, not an error."""
    session, ref = start(lab, login, faults=[fault("shutdown_never")] if hard else [])

    def pull_the_plug() -> None:
        wait_for_task(session, ref.PowerOffVM_Task(), LONG_S, "sql16 was not powered off")

    if hard:
        fence = at_the_second_look(pull_the_plug)
        shut_down(session, ref, timeout_s=SHORT_S, on_timeout="power_off", fence=fence)
    else:
        shut_down(session, ref, timeout_s=LONG_S, fence=pull_the_plug)
    assert read_vm(session, ref).power is Power.OFF


@pytest.mark.parametrize("hard", [False, True], ids=["asked", "powered off"])
def test_a_fence_stops_the_shutdown(lab: LabFactory, login: Login, hard: bool) -> None:
    """A lost lease is noticed before the guest is asked, and before a hard power-off, which is much later."""
    session, ref = start(lab, login, faults=[fault("shutdown_never")] if hard else [])
    fence = at_the_second_look(lost_lease) if hard else lost_lease
    with pytest.raises(LeaseLost):
        shut_down(session, ref, timeout_s=SHORT_S, on_timeout="power_off", fence=fence)
    assert read_vm(session, ref).power is Power.ON


def test_a_fence_stops_the_power_on(lab: LabFactory, login: Login) -> None:
    """A lost lease is noticed before the VM is powered on."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    with pytest.raises(LeaseLost):
        power_on(session, ref, host_moid=read_vm(session, ref).host_moid, fence=lost_lease)
    assert read_vm(session, ref).power is Power.OFF


@pytest.mark.parametrize("maintenance", [False, True], ids=["just after a shutdown", "maintenance"])
def test_an_invalid_state_passes_unless_the_host_is_the_reason(
    lab: LabFactory, login: Login, maintenance: bool
) -> None:
    """ESXi that still cleans up is tried again; a host that powers nothing on is named at once."""
    running = lab(vms=[vm(power="off")])
    session = login(running)
    ref = find_vm(session, "sql16")
    running.fault("host_maintenance" if maintenance else "invalid_state")

    with pytest.raises(PowerFailed if maintenance else NotNow):
        power_on(session, ref, host_moid=None)


def test_a_power_on_that_takes_too_long_is_given_up_on(lab: LabFactory, login: Login) -> None:
    """A power-on task that runs on past the time-out fails."""
    session, ref = start(lab, login, vms=[vm(power="off")], boot={"task_seconds": 5})
    with pytest.raises(PowerFailed):
        power_on(session, ref, host_moid=read_vm(session, ref).host_moid, timeout_s=0.1)


def test_a_question_ends_the_wait_at_once_with_its_text_and_choices(lab: LabFactory, login: Login) -> None:
    """Nothing continues before somebody answers, so waiting for a deadline is pointless."""
    session, ref = start(lab, login, vms=[vm(power="off")], faults=[fault("question")])
    began = time.monotonic()
    with pytest.raises(QuestionPending) as caught:
        power_on(session, ref, host_moid=read_vm(session, ref).host_moid, timeout_s=LONG_S)
    assert time.monotonic() - began < LONG_S / 2
    assert caught.value.what == (
        'sql16 waits for an answer in vCenter: "msg.uuid.altered:This virtual machine might have been moved '
        'or copied. If you don\'t know, answer "I Copied It"." (choices: Cancel, I Moved It, I Copied It).'
    )
    with pytest.raises(QuestionPending):  # the power-on's task is still there
        settle(session, ref, LONG_S)
    ref.AnswerVM(questionId="1", answerChoice="1")
    settle(session, ref, LONG_S)
    wait_for_guest(session, ref, timeout_s=LONG_S)
    assert read_vm(session, ref).power is Power.ON


def test_the_shutdown_of_a_vm_that_a_question_stopped_is_not_asked_for(lab: LabFactory, login: Login) -> None:
    """Its Tools still count as running, but nothing in it runs: an answer helps, no longer deadline."""
    session, ref = start(lab, login, faults=[fault("question_running", boot=1)])
    wait_for(session, ref, (QUESTION,), lambda seen: QUESTION in seen, LONG_S, "no question")
    with pytest.raises(QuestionPending):
        shut_down(session, ref, timeout_s=LONG_S, on_timeout="power_off")
    ref.AnswerVM(questionId=ref.runtime.question.id, answerChoice="0")
    shut_down(session, ref, timeout_s=LONG_S)
    assert read_vm(session, ref).power is Power.OFF


def test_the_age_of_a_boot_is_vcenters_own(lab: LabFactory, login: Login) -> None:
    """How long a VM has been on is measured by vCenter's clock; a VM that is off has no such age."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    with pytest.raises(PowerFailed):
        seconds_since_power_on(session, ref)
    began = time.monotonic()
    power_on(session, ref, host_moid=read_vm(session, ref).host_moid)
    assert 0 <= seconds_since_power_on(session, ref) <= time.monotonic() - began + 1


def test_a_vm_that_is_on_cannot_be_powered_on(lab: LabFactory, login: Login) -> None:
    """Powering on a VM that runs is an error: what was configured would not be in effect."""
    session, ref = start(lab, login)
    with pytest.raises(PowerFailed):
        power_on(session, ref, host_moid=read_vm(session, ref).host_moid)


def test_a_vm_that_goes_off_is_not_waited_for(lab: LabFactory, login: Login) -> None:
    """A VM that is off will not bring up its Tools: the wait ends at once."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    with pytest.raises(ToolsTimeout):
        wait_for_guest(session, ref, timeout_s=LONG_S)


def test_a_host_that_is_gone_is_named(lab: LabFactory, login: Login) -> None:
    """A host that vCenter no longer has cannot be powered on at: the VM stays off."""
    session, ref = start(lab, login, vms=[vm(power="off")])
    with pytest.raises(VmNotFound):
        power_on(session, ref, host_moid="host-999")
    assert read_vm(session, ref).power is Power.OFF


def test_a_power_cycle_takes_few_round_trips(lab: LabFactory, login: Login) -> None:
    """Off, on and the wait for the guest are pushed, not polled."""
    session, ref = start(lab, login)
    wait_for_guest(session, ref, timeout_s=LONG_S)
    host = read_vm(session, ref).host_moid
    before = session.round_trips
    shut_down(session, ref, timeout_s=LONG_S)
    power_on(session, ref, host_moid=host)
    wait_for_guest(session, ref, timeout_s=LONG_S)
    assert session.round_trips - before <= 30


def test_a_reboot_that_ends_powered_off(lab: LabFactory, login: Login) -> None:
    """On ESXi 8 the guest is asked to reboot instead; the mark for it is gone afterwards."""
    session, ref = start(lab, login, esxi={"version": "8.0.3", "build": "1"})
    wait_for_guest(session, ref, timeout_s=LONG_S)

    shut_down(session, ref, timeout_s=LONG_S, ask="reboot")

    after = read_vm(session, ref)
    assert (after.power, after.settings["rebootPowerOff"]) == (Power.OFF, False)


def test_a_guest_that_does_not_reboot_keeps_no_mark(lab: LabFactory, login: Login) -> None:
    """Its next reboot, whenever that is, must not power it off."""
    session, ref = start(lab, login, faults=[fault("tools_never", boot=1)])

    with pytest.raises(ShutdownTimeout):
        shut_down(session, ref, timeout_s=0.2, ask="reboot")

    assert read_vm(session, ref).settings["rebootPowerOff"] is False
