"""Shut a guest down as an administrator would: through Tools, never by a hard power-off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power
from vnuma.engine.cell import deferred_log
from vnuma.engine.lease.audit import Journal
from vnuma.errors import HostNotReady
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef

Fence = Callable[[], None]

POWER_ON = (Edit("power", str(Power.OFF), str(Power.ON)),)
POWER_OFF = (Edit("power", str(Power.ON), str(Power.OFF)),)


@dataclass(frozen=True)
class PowerRules:
    """Deadlines of a power-cycle in seconds, and what to do when a guest does not shut down."""

    shutdown_s: float = 600
    on_timeout: Literal["fail", "power_off"] = "fail"
    tools_s: float = 600
    task_s: float = 300
    retry_s: float = 900
    sql_s: float = 600
    ask: power.Ask = "shut_down"

    @property
    def step_s(self) -> float:
        """The longest that a step may hold a VM's lock: shutdown, boot, and the tasks between them."""
        return self.shutdown_s + self.tools_s + 2 * self.task_s

    @classmethod
    def of(cls, study: Study) -> PowerRules:
        """The study's power rules."""
        limits = study.power
        return cls(
            limits.shutdown_timeout_s,
            limits.on_shutdown_timeout,
            limits.tools_timeout_s,
            limits.task_timeout_s,
            limits.vcenter_retry_s,
            limits.sql_timeout_s,
            limits.guest_is_asked_to,
        )


def require_power_on_possible(session: Session, ref: VmRef) -> None:
    """Check before a shutdown that the VM's host can power it on again. Raises HostNotReady."""
    why = read.why_no_power_on(session, ref)
    if why:
        name = session.transport.name_of(ref)
        raise HostNotReady(
            f"{name} was not shut down, because it could not be powered on again: {why}",
            fix="End the host's maintenance or reconnect it; or move the VM, and start a new run there.",
        )


def shut_down(session: Session, ref: VmRef, rules: PowerRules, fence: Fence, journal: Journal) -> None:
    """Shut down the guest of a running VM under these rules. Raises ShutdownTimeout; the VM then stays on.

    The journal line is written when the guest is asked, since the VM may go off at any time after that. A
    vmware.log that is still missing is fetched now: the next power-on rotates it.
    """
    with ExitStack() as line:

        def ask() -> None:
            fence()
            if not begun:
                line.enter_context(journal.change("power", POWER_OFF))
                begun.append(True)

        begun: list[bool] = []
        power.shut_down(
            session, ref, timeout_s=rules.shutdown_s, on_timeout=rules.on_timeout, ask=rules.ask, fence=ask
        )
        if not begun:  # it went off by itself while we waited for its Tools
            line.enter_context(journal.change("power", POWER_OFF))
    deferred_log.collect(journal, session, ref)
