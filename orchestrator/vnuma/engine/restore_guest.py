"""What of a restore only SQL Server itself can do: its automatic soft-NUMA, which a restart brings about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vnuma.domain.facts import VmFacts
from vnuma.domain.setting import Power
from vnuma.engine import soft_numa
from vnuma.engine.audit import Journal
from vnuma.engine.poweroff import POWER_ON, Fence, PowerRules, shut_down
from vnuma.sqlserver.connect import SqlServer
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef


@dataclass
class GuestBack:
    """Puts one VM's SQL Server back; does nothing for a run that did not change it (`wanted` None)."""

    session: Session
    ref: VmRef
    server: Callable[[], SqlServer]
    wanted: bool | None
    rules: PowerRules
    fence: Fence
    journal: Journal
    say: Callable[[str], None]
    _restart: bool | None = None
    """Whether a restart is still needed; None: not set back yet."""

    def before_shape(self, facts: VmFacts) -> None:
        """Use the boot that still runs: the power-cycle for the shape then brings it about too."""
        if self.wanted is not None and facts.power is Power.ON:
            self._restart = soft_numa.try_put_back(self.server(), self.wanted, self.journal)

    def after_shape(self, facts: VmFacts) -> VmFacts:
        """Set it back where that was not possible before; the VM is left off if a restart is needed.

        Raises SqlTimeout, SqlFailed, PowerFailed, ShutdownTimeout.
        """
        if self.wanted is None:
            return facts
        if self._restart is None:
            if facts.power is not Power.ON:
                self.say(f"powering {facts.name} on to put SQL Server back")
                with self.journal.change("power", POWER_ON):
                    power.power_on(
                        self.session,
                        self.ref,
                        host_moid=facts.host_moid,
                        fence=self.fence,
                        timeout_s=self.rules.task_s,
                    )
            self._restart = soft_numa.put_back(
                self.server(), self.wanted, self.journal, deadline_s=self.rules.sql_s
            )
        facts = read.read_vm(self.session, self.ref)
        if self._restart and facts.power is Power.ON:
            shut_down(self.session, self.ref, self.rules, self.fence, self.journal)
            facts = read.read_vm(self.session, self.ref)
        return facts

    def prove(self, state: Power) -> int:
        """How many settings of SQL Server were proven back; SqlTimeout or SqlFailed if they are not."""
        if self.wanted is None or state is not Power.ON:
            return 0
        soft_numa.verify(self.server(), self.wanted, deadline_s=self.rules.sql_s)
        return 1
