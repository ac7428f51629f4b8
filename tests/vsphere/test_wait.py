"""Waiting: pushed, bounded, and honest about how it ended."""

from __future__ import annotations

import signal
import ssl
import sys
import threading
import time
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.lab import LabHandle
from tests.vsphere.support import LabFactory, Login, change, vm
from vnuma.errors import VmNotFound, WaitTimeout
from vnuma.vsphere.apply import reconfigure
from vnuma.vsphere.connect import Session, SessionExpired, VmRef
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.transport import Transport
from vnuma.vsphere.wait import settle, wait_for, wait_for_task

LONG_S = 60.0
POWER = "runtime.powerState"


def is_off(values: Any) -> bool:
    """Whether the VM is off."""
    return str(values.get(POWER)) == "poweredOff"


def reads_an_answer(thread: threading.Thread) -> bool:
    """Whether a thread is in the middle of a read from the server.

    Elsewhere Python may be in a callback of its garbage collector, where an interrupt gets lost.
    """
    assert thread.ident is not None
    code = sys._current_frames()[thread.ident].f_code
    return (code.co_filename, code.co_name) == (ssl.__file__, "read")


def test_a_state_that_holds_needs_no_wait(session: Session, ref: VmRef) -> None:
    """A predicate that holds at the start returns the values at once, even without time left."""
    values = wait_for(session, ref, (POWER, "name"), lambda seen: not is_off(seen), 0, "sql16 was off")
    assert values["name"] == "sql16"


def test_unset_properties_are_absent(session: Session, ref: VmRef) -> None:
    """A property that is not set is left out of the values, not invented."""
    values = wait_for(session, ref, (POWER, "runtime.question"), lambda seen: True, 1, "nothing")
    assert values.keys() == {POWER}


def test_a_wait_ends_at_its_deadline(session: Session, ref: VmRef) -> None:
    """A state that never comes ends the wait, with what was waited for, how long, and what was seen."""
    with pytest.raises(WaitTimeout, match=r"^sql16 did not power off in 0\.1 s\.\n  Check the") as caught:
        wait_for(session, ref, (POWER,), is_off, 0.1, "sql16 did not power off")
    assert str(caught.value.seen[POWER]) == "poweredOn"


def test_the_deadline_is_the_callers_clock(session: Session, ref: VmRef) -> None:
    """The clock that is passed in decides when time is up."""
    ticks = iter([1e9, 1e9, 1e9 + 99])
    with pytest.raises(WaitTimeout):
        wait_for(session, ref, (POWER,), is_off, 99, "sql16 did not power off", clock=lambda: next(ticks))


def test_a_change_is_pushed(lab: LabFactory, login: Login) -> None:
    """A change made by somebody else during the wait ends it."""
    running = lab(vms=[vm(power="off")])
    watcher, actor = login(running), login(running)
    ref = find_vm(watcher, "sql16")

    def act() -> None:
        other = find_vm(actor, "sql16")
        other.PowerOnVM_Task()

    thread = threading.Thread(target=act)
    thread.start()
    values = wait_for(watcher, ref, (POWER,), lambda seen: not is_off(seen), LONG_S, "sql16 did not power on")
    thread.join()
    assert str(values[POWER]) == "poweredOn"


def test_no_collector_is_left_behind(session: Session, ref: VmRef, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that is over has taken its property collector away: its filters cost the server."""
    answers: dict[str, Any] = {}
    call = Transport.InvokeMethod

    def call_and_tell(stub: Transport, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:
        answers[info.wsdlName] = call(stub, mo, info, args, outerStub)
        return answers[info.wsdlName]

    monkeypatch.setattr(Transport, "InvokeMethod", call_and_tell)
    wait_for(session, ref, (POWER,), lambda seen: True, 1, "nothing")
    with pytest.raises(VmNotFound):
        answers["CreatePropertyCollector"].CheckForUpdates("")


def test_an_interrupt_ends_the_wait_at_once(session: Session, ref: VmRef) -> None:
    """Ctrl-C in the middle of a wait is felt at once, and the session is as good as before."""
    inside, main = threading.Event(), threading.main_thread()

    def interrupt() -> None:
        inside.wait(LONG_S)
        deadline = time.monotonic() + LONG_S
        while not reads_an_answer(main) and time.monotonic() < deadline:
            main.join(0.01)
        assert main.ident is not None
        signal.pthread_kill(main.ident, signal.SIGINT)

    def tell(_: Any) -> bool:
        inside.set()
        return False

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait_for(session, ref, (POWER,), tell, LONG_S, "sql16 did not power off")
    thread.join()
    assert time.monotonic() - began < LONG_S / 4
    assert read_vm(session, ref).name == "sql16"


def test_an_ended_session_ends_the_wait(lab: LabFactory, login: Login) -> None:
    """A session that the server ends during a wait is reported as ended, not as a missing VM."""
    running = lab()
    session = login(running)
    ref = find_vm(session, "sql16")

    def end_session(_: Any) -> bool:
        session.content.sessionManager.Logout()
        return False

    with pytest.raises(SessionExpired):
        wait_for(session, ref, (POWER,), end_session, LONG_S, "sql16 did not power off")


def test_a_task_that_succeeds_gives_its_result(lab: LabFactory, login: Login) -> None:
    """A task's success is reported once it is known."""
    session = login(lab(vms=[vm(power="off")]))
    ref = find_vm(session, "sql16")
    wait_for_task(session, ref.PowerOnVM_Task(), LONG_S, "sql16 was not powered on")
    assert str(session.read(ref, (POWER,)).values[POWER]) == "poweredOn"


def test_a_task_that_fails_raises_its_fault(session: Session, ref: VmRef) -> None:
    """A task's failure is raised as the fault that vSphere gave."""
    with pytest.raises(vim.fault.InvalidPowerState):
        wait_for_task(session, ref.PowerOnVM_Task(), LONG_S, "sql16 was not powered on")


def test_a_slow_task_is_not_waited_for_without_end(lab: LabFactory, login: Login) -> None:
    """A task that runs on past the deadline is a time-out."""
    session = login(lab(vms=[vm(power="off")], boot={"task_seconds": 5}))
    ref = find_vm(session, "sql16")
    with pytest.raises(WaitTimeout):
        wait_for_task(session, ref.PowerOnVM_Task(), 0.1, "sql16 was not powered on")


def test_settling_waits_for_other_peoples_tasks(lab: LabFactory, login: Login) -> None:
    """Before a restore, a task that somebody else started is waited for until it has ended."""
    running = lab(vms=[vm(power="off")], boot={"task_seconds": 1})
    session, other = login(running), login(running)
    ref = find_vm(session, "sql16")
    find_vm(other, "sql16").PowerOnVM_Task()
    settle(session, ref, LONG_S)
    assert str(session.read(ref, (POWER,)).values[POWER]) == "poweredOn"


def test_settling_is_bounded(lab: LabFactory, login: Login) -> None:
    """Waiting for a task that does not end is limited."""
    session = login(lab(vms=[vm(power="off")], boot={"task_seconds": 5}))
    ref = find_vm(session, "sql16")
    ref.PowerOnVM_Task()
    with pytest.raises(WaitTimeout):
        settle(session, ref, 0.1)


def test_a_quiet_vm_settles_at_once(shared_lab: LabHandle, login: Login) -> None:
    """Without running tasks, settling is one read."""
    session = login(shared_lab)
    ref = find_vm(session, "sql16")
    before = session.round_trips
    settle(session, ref, LONG_S)
    assert session.round_trips - before == 1


def test_a_session_that_the_server_expires_is_reported(lab: LabFactory, login: Login) -> None:
    """A session that expires on the server is an error of its own, so that a caller may connect again."""
    running = lab(faults=[{"kind": "session_expired"}])
    session = login(running)

    def use() -> None:
        for _ in range(3):
            ref = find_vm(session, "sql16")
            reconfigure(session, ref, change(session, ref, memoryReservation=1024))

    with pytest.raises(SessionExpired):
        use()
    again = login(running)
    assert read_vm(again, find_vm(again, "sql16")).name == "sql16"
