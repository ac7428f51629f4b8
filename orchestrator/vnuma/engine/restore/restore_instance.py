"""What of a restore only SQL Server can do: soft-NUMA, process affinity, resource pool, TCP ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.cell.guest_shutdown import POWER_ON, Fence, PowerRules, require_way_back, shut_down
from vnuma.engine.instance import process_affinity, resource_pool, soft_numa, tcp_ports
from vnuma.engine.instance.sql_identity import require_silence
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import (
    NOT_KNOWN,
    RESOURCE_POOL,
    SOFT_NUMA,
    TCP_PORTS,
    baseline_affinity,
    baseline_pool,
    baseline_ports,
    baseline_soft_numa,
    wrote_inside,
)
from vnuma.errors import AttemptFailed, EnvironmentProblem, HostChanged, LoginRefused, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.vsphere import power, read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.uptime import powered_on_at, seconds_since


class Part(Protocol):
    """One setting of SQL Server that is put back."""

    def plan(self, server: SqlServer | None) -> tuple[Edit | None, bool]:
        """The edit that putting it back takes, and whether it takes a restart too; None: no server to ask."""

    def try_back(self, server: SqlServer, journal: Journal) -> bool | None:
        """Set it now. True if only a restart brings it about, None for a server that does not answer."""

    def back(self, server: SqlServer, journal: Journal, deadline_s: float) -> bool:
        """Set it, waiting for the server to come up. Raises SqlTimeout, SqlFailed."""

    def verify(self, server: SqlServer, deadline_s: float) -> None:
        """Raises SqlTimeout or SqlFailed unless it is in use."""


@dataclass(frozen=True)
class _SoftNuma:
    wanted: bool

    def plan(self, server: SqlServer | None) -> tuple[Edit | None, bool]:
        now = soft_numa.now(server) if server else None
        if now is None:
            return Edit(SOFT_NUMA, NOT_KNOWN, self.wanted), True
        edit = None if now.configured is self.wanted else Edit(SOFT_NUMA, now.configured, self.wanted)
        return edit, now.in_use is not self.wanted

    def try_back(self, server: SqlServer, journal: Journal) -> bool | None:
        return soft_numa.try_put_back(server, self.wanted, journal)

    def back(self, server: SqlServer, journal: Journal, deadline_s: float) -> bool:
        return soft_numa.put_back(server, self.wanted, journal, deadline_s=deadline_s)

    def verify(self, server: SqlServer, deadline_s: float) -> None:
        soft_numa.verify(server, self.wanted, deadline_s=deadline_s)


@dataclass(frozen=True)
class _Affinity:
    """Takes effect at once: no restart."""

    wanted: str

    def plan(self, server: SqlServer | None) -> tuple[Edit | None, bool]:
        return process_affinity.planned(server, self.wanted), False

    def try_back(self, server: SqlServer, journal: Journal) -> bool | None:
        try:
            process_affinity.switch(server, self.wanted, journal)
        except (SqlUnreachable, LoginRefused):
            return None
        return False

    def back(self, server: SqlServer, journal: Journal, deadline_s: float) -> bool:
        soft_numa.wait_for_server(server, deadline_s)
        process_affinity.switch(server, self.wanted, journal)
        return False

    def verify(self, server: SqlServer, deadline_s: float) -> None:
        soft_numa.wait_for_server(server, deadline_s)
        process_affinity.verify(server, self.wanted)


@dataclass(frozen=True)
class _Pool:
    """Taken away at once: no restart of SQL Server."""

    wanted: str

    def plan(self, server: SqlServer | None) -> tuple[Edit | None, bool]:
        now = resource_pool.now(server) if server else None
        if now is None:
            return Edit(RESOURCE_POOL, NOT_KNOWN, self.wanted), False
        return None if now == self.wanted else Edit(RESOURCE_POOL, now, self.wanted), False

    def try_back(self, server: SqlServer, journal: Journal) -> bool | None:
        try:
            resource_pool.put_back(server, self.wanted, journal)
        except (SqlUnreachable, LoginRefused):
            return None
        return False

    def back(self, server: SqlServer, journal: Journal, deadline_s: float) -> bool:
        soft_numa.wait_for_server(server, deadline_s)
        resource_pool.put_back(server, self.wanted, journal)
        return False

    def verify(self, server: SqlServer, deadline_s: float) -> None:
        soft_numa.wait_for_server(server, deadline_s)
        resource_pool.verify(server, self.wanted)


@dataclass(frozen=True)
class _Ports:
    wanted: str

    def plan(self, server: SqlServer | None) -> tuple[Edit | None, bool]:
        now = tcp_ports.now(server, self.wanted) if server else None
        if now is None:
            return Edit(TCP_PORTS, NOT_KNOWN, self.wanted), True
        edit = None if now.setting == self.wanted else Edit(TCP_PORTS, now.setting, self.wanted)
        return edit, not now.in_use

    def try_back(self, server: SqlServer, journal: Journal) -> bool | None:
        return tcp_ports.try_put_back(server, self.wanted, journal)

    def back(self, server: SqlServer, journal: Journal, deadline_s: float) -> bool:
        return tcp_ports.put_back(server, self.wanted, journal, deadline_s=deadline_s)

    def verify(self, server: SqlServer, deadline_s: float) -> None:
        tcp_ports.verify(server, self.wanted, deadline_s=deadline_s)


def parts_of(store: Store, run: Run, vm: Vm) -> tuple[Part, ...]:
    """What of SQL Server the run changed on this VM, by its audit log: else there is nothing to put back."""
    return _parts_of(vm) if wrote_inside(store, run, vm) else ()


def _parts_of(vm: Vm) -> tuple[Part, ...]:
    numa, affinity = baseline_soft_numa(vm), baseline_affinity(vm)
    pool, ports = baseline_pool(vm), baseline_ports(vm)
    found: list[Part] = [] if numa is None else [_SoftNuma(numa)]
    found += [] if affinity is None else [_Affinity(affinity)]
    found += [] if pool is None else [_Pool(pool)]
    found += [] if ports is None else [_Ports(ports)]
    return tuple(found)


@dataclass
class InstanceRestore:
    """Puts one VM's SQL Server back; does nothing for a run that did not change it (no `parts`)."""

    session: Session
    ref: VmRef
    server: Callable[[], SqlServer]
    is_ours: Callable[[], bool]
    """Whether the SQL Server that answers now is proven to run inside the VM."""
    parts: tuple[Part, ...]
    rules: PowerRules
    fence: Fence
    journal: Journal
    say: Callable[[str], None]
    _restart: dict[Part, bool] = field(default_factory=dict)
    """Whether a restart is still needed for a part; absent: not set back yet."""

    def before_shape(self, facts: VmFacts) -> None:
        """Use the boot that still runs: the power-cycle for the shape then brings it about too."""
        if not self.parts or facts.power is not Power.ON or not self.is_ours():
            return
        for part in self.parts:
            try:
                needed = part.try_back(self.server(), self.journal)
            except (AttemptFailed, EnvironmentProblem):  # `after_shape` raises it, once the shape is back
                continue
            if needed is not None:
                self._restart[part] = needed

    def after_shape(self, facts: VmFacts) -> VmFacts:
        """Set it back where that was not possible before; the VM is left off if a restart is needed.

        Raises SqlTimeout, SqlFailed, PowerFailed, ShutdownTimeout, WrongServer.
        """
        if not self.parts:
            return facts
        late = [part for part in self.parts if part not in self._restart]
        if late and not (facts.power is Power.ON and self.is_ours()):
            self._boot(facts)
        for part in late:
            self._restart[part] = part.back(self.server(), self.journal, self.rules.sql_s)
        facts = read.read_vm(self.session, self.ref)
        if any(self._restart.values()) and facts.power is Power.ON:
            require_way_back(self.session, self.ref)
            shut_down(self.session, self.ref, self.rules, self.fence, self.journal)
            facts = read.read_vm(self.session, self.ref)
        return facts

    def _boot(self, facts: VmFacts) -> None:
        """A power-on that shows whose SQL Server answers: nothing before it, and one that starts after it."""
        if facts.power is not Power.OFF:
            require_way_back(self.session, self.ref)
            shut_down(self.session, self.ref, self.rules, self.fence, self.journal)
        require_silence(self.server(), facts.name)
        self.say(f"powering {facts.name} on to put SQL Server back")
        with self.journal.change("power", POWER_ON):
            try:
                at = power.power_on(
                    self.session,
                    self.ref,
                    host_moid=facts.host_moid,
                    fence=self.fence,
                    timeout_s=self.rules.task_s,
                )
            except HostChanged as moved:  # DRS or HA placed it elsewhere: it is on all the same
                self.say(f"{moved.what} {moved.fix or ''}")
                at = powered_on_at(self.session, self.ref)
        soft_numa.wait_for_server(self.server(), self.rules.sql_s, seconds_since(self.session, at))

    def prove(self, state: Power) -> int:
        """How many settings of SQL Server were proven back; SqlTimeout or SqlFailed if they are not."""
        if state is not Power.ON:
            return 0
        for part in self.parts:
            part.verify(self.server(), self.rules.sql_s)
        return len(self.parts)
