"""Power a VM on, and shut its guest down as an administrator would: through Tools, not by a power-off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.context import VmContext
from vnuma.engine.audit.journal import Journal, journal_of
from vnuma.engine.cell import evidence
from vnuma.errors import HostChanged, HostNotReady, ShutdownTimeout
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session, VmRef

Fence = Callable[[], None]

POWER_ON = (Edit("power", str(Power.OFF), str(Power.ON)),)
POWER_OFF = (Edit("power", str(Power.ON), str(Power.OFF)),)


@dataclass(frozen=True)
class PowerSwitch:
    """Powers one VM on and off in one vSphere session; each is in the journal before it is done."""

    session: Session
    ref: VmRef
    rules: PowerRules
    fence: Fence
    journal: Journal
    say: Callable[[str], None] = lambda _: None

    @classmethod
    def of(
        cls, context: VmContext, session: Session, ref: VmRef, say: Callable[[str], None] = lambda _: None
    ) -> PowerSwitch:
        """That of a cell's VM."""
        return cls(session, ref, context.study.power, context.fence, journal_of(context), say)

    def off(self, *, back_on: bool) -> None:
        """Shut down the guest of a running VM, and watch one that has begun to and is late.

        Raises ShutdownTimeout: the VM is on, and goes off later if its guest has begun to shut down.
        With `back_on` it is refused first where the VM could not be powered on again. The journal line is
        written when the guest is asked, since the VM may go off at any time after that. A vmware.log that is
        still missing is fetched now: the next power-on rotates it.
        """
        if back_on:
            self.require_on_possible()
        with ExitStack() as line:

            def ask() -> None:
                self.fence()
                if not begun:
                    line.enter_context(self.journal.change("power", POWER_OFF))
                    begun.append(True)

            begun: list[bool] = []
            try:
                power.shut_down(
                    self.session,
                    self.ref,
                    timeout_s=self.rules.shutdown_timeout_s,
                    on_timeout=self.rules.on_shutdown_timeout,
                    ask=self.rules.guest_is_asked_to,
                    fence=ask,
                )
            except ShutdownTimeout:
                if not begun or not self.is_late():
                    raise
                self.await_off()
            if not begun:  # it went off by itself while we waited for its Tools
                line.enter_context(self.journal.change("power", POWER_OFF))
        evidence.collect(self.journal, self.session, self.ref)

    def is_late(self) -> bool:
        """Whether a guest that was asked to shut down still does so; one asked to reboot comes back."""
        return self.rules.guest_is_asked_to == "shut_down" and power.is_shutting_down(self.session, self.ref)

    def await_off(self) -> None:
        """Watch a guest that is late until it is off, saying how long. Raises ShutdownTimeout, LeaseLost."""
        name = self.session.transport.name_of(self.ref)

        def tell(left_s: float) -> None:
            self.fence()
            self.say(f"{name} is still shutting down; watched for {left_s:.0f} s more")

        power.await_shutdown(self.session, self.ref, self.rules.late_shutdown_s, tell)

    def require_on_possible(self) -> None:
        """Raise HostNotReady if the VM's host could not power it on."""
        why = read.why_no_power_on(self.session, self.ref)
        if why:
            name = self.session.transport.name_of(self.ref)
            raise HostNotReady(
                f"{name} was not shut down, because it could not be powered on again: {why}",
                fix="End the host's maintenance or reconnect it; or move the VM, and start a new run there.",
            )

    def on(self, host_moid: str | None, noted: Callable[[datetime], None] = lambda _: None) -> None:
        """Power on on exactly that host, call `noted` with the time of it, and wait for the guest's Tools."""
        with self.journal.change("power", POWER_ON):
            noted(self._power_on(host_moid))
        power.wait_for_guest(self.session, self.ref, timeout_s=self.rules.tools_timeout_s)

    def on_again(self, host_moid: str | None) -> datetime | None:
        """Power on at that host, and return when; None if DRS or HA placed it elsewhere, which is said."""
        with self.journal.change("power", POWER_ON):
            try:
                return self._power_on(host_moid)
            except HostChanged as moved:
                self.say(f"{moved.what} {moved.fix or ''}")
                return None

    def _power_on(self, host_moid: str | None) -> datetime:
        limit_s = self.rules.task_timeout_s
        return power.power_on(
            self.session, self.ref, host_moid=host_moid, fence=self.fence, timeout_s=limit_s
        )
