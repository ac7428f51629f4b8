"""The part of a restore that only SQL Server can do: soft-NUMA, process affinity, pool, TCP ports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.cell.power_switch import PowerSwitch
from vnuma.engine.instance.instance_setting import wait_for_server
from vnuma.engine.instance.settings import Baselined
from vnuma.engine.instance.sql_identity import require_silence
from vnuma.errors import AttemptFailed, EnvironmentProblem
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.vsphere import read
from vnuma.vsphere.uptime import powered_on_at, seconds_since


@dataclass
class InstanceRestore:
    """Restores one VM's SQL Server; does nothing for a run that changed none of its `settings`."""

    switch: PowerSwitch
    server: Callable[[], SqlServer]
    is_ours: Callable[[], bool]
    """Whether the SQL Server that answers now is proven to run inside the VM."""
    settings: tuple[Baselined, ...]
    _restart: dict[Baselined, bool] = field(default_factory=dict)
    """Whether a setting still needs a restart; unset before the first attempt to set it."""

    def before_shape(self, facts: VmFacts) -> None:
        """Set it during the present boot, so that the power-cycle for the shape also makes it effective."""
        if not self.settings or facts.power is not Power.ON or not self.is_ours():
            return
        for one in self.settings:
            with suppress(AttemptFailed, EnvironmentProblem):  # `after_shape` raises it later
                self._set(one)

    def after_shape(self, facts: VmFacts) -> VmFacts:
        """Set what was not possible before; the VM stays off if a restart is needed.

        Raises SqlTimeout, SqlFailed, PowerFailed, ShutdownTimeout, WrongServer.
        """
        if not self.settings:
            return facts
        late = [one for one in self.settings if one not in self._restart]
        if late and not (facts.power is Power.ON and self.is_ours()):
            self._boot(facts)
        for one in late:
            wait_for_server(self.server(), self.switch.rules.sql_timeout_s)
            self._set(one)
        facts = read.read_vm(self.switch.session, self.switch.ref)
        if any(self._restart.values()) and facts.power is Power.ON:
            self.switch.off(back_on=True)
            facts = read.read_vm(self.switch.session, self.switch.ref)
        return facts

    def _set(self, one: Baselined) -> None:
        self._restart[one] = one.setting.switch(self.server(), one.value, self.switch.journal).needs_restart

    def _boot(self, facts: VmFacts) -> None:
        """Power on and prove whose SQL Server answers: none before the power-on, and a later start."""
        switch = self.switch
        if facts.power is not Power.OFF:
            switch.off(back_on=True)
        require_silence(self.server(), facts.name)
        switch.say(f"powering {facts.name} on to restore SQL Server")
        at = switch.on_again(facts.host_moid) or powered_on_at(switch.session, switch.ref)
        wait_for_server(self.server(), switch.rules.sql_timeout_s, seconds_since(switch.session, at))

    def prove(self, state: Power) -> int:
        """How many settings of SQL Server were proven restored. Raises SqlTimeout or SqlFailed."""
        if state is not Power.ON:
            return 0
        for one in self.settings:
            one.setting.verify(self.server(), one.value, self.switch.rules.sql_timeout_s)
        return len(self.settings)
