"""Write a VM's settings while others write to it too: shut it down, compare, write, never leave it off.

Used by a cell's shaping, by every restore, and by the roles outside a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vnuma.domain.vm.change import Change, with_lock_reservation
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.cell.power_switch import PowerSwitch
from vnuma.errors import (
    AttemptFailed,
    CertificateRejected,
    EnvironmentProblem,
    LeaseLost,
    VCenterUnreachable,
    VnumaError,
)
from vnuma.vsphere import apply, read

WRITE_TRIES = 5
"""How often settings are compared and written when somebody writes to the VM meanwhile."""

_ELSEWHERE = (LeaseLost, VCenterUnreachable, CertificateRejected)
"""Errors after which nothing can be done: another process has the VM, or vCenter does not answer."""


def write_settings(
    switch: PowerSwitch,
    action: str,
    facts: VmFacts,
    decide: Callable[[VmFacts], Change],
    *,
    always_off: bool = False,
    back_on: bool = True,
) -> tuple[Change, VmFacts]:
    """Make the change that `decide` finds for the VM; returns it, and the VM as it reads afterwards.

    `facts` were just read. The VM is shut down first if the change needs it, or with `always_off`; it stays
    off. hostd, backups and Tools write to a VM just after a shutdown, so each try reads and decides anew.
    `decide` raises for a setting that somebody else changed. `back_on` is as in `PowerSwitch.off`. Raises
    ChangedMeanwhile after the last try.
    """
    change = decide(facts)
    if facts.power is not Power.OFF and (always_off or change.needs_power_off):
        switch.off(back_on=back_on)
        facts = read.read_vm(switch.session, switch.ref)
        change = decide(facts)
    for tries_left in reversed(range(WRITE_TRIES)):
        if not change:
            break
        try:
            with switch.journal.change(action, with_lock_reservation(change, facts.settings)):
                facts = apply.reconfigure(switch.session, switch.ref, change, seen=facts, fence=switch.fence)
            break
        except apply.ChangedMeanwhile:
            if not tries_left:
                raise
            facts = read.read_vm(switch.session, switch.ref)
            change = decide(facts)
    return change, facts


@contextmanager
def not_left_off(switch: PowerSwitch, ours: Callable[[], bool]) -> Iterator[None]:
    """After a failure, power on a VM that is off although it has to be on; the error says what became of it.

    `ours` tells whether it has to be on and was last powered off by us. It boots in its present shape, on any
    host that takes it.
    """
    try:
        yield
    except _ELSEWHERE:
        raise
    except VnumaError as error:
        if read.read_power(switch.session, switch.ref)[0] is Power.ON or not ours():
            raise
        try:
            switch.say("powering it on in its present shape")
            switch.on_again(None)
        except (AttemptFailed, EnvironmentProblem) as refused:
            became = f"It is off: {refused.what}"
        else:
            became = "It was powered on in its present shape."
        raise type(error)(f"{error.what}\n{became}", fix=error.fix) from error
