"""Settings of a SQL Server instance: baseline, the value a boot needs, restore and check, a class for each.

All of them survive restarts, so a controller that dies leaves them changed; every restore resets them.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Quiet, Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.endpoint import mapped, ports_of
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import Journal
from vnuma.engine.lease.baseline import NOT_KNOWN, GuestReader, baseline_guest, changed_sql_server
from vnuma.errors import LoginRefused, PreflightBlocked, SqlFailed, SqlUnreachable, StoreError, undo_at_end
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance import buffer_pool, ready, server_configuration
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.sqlserver.instance.server_configuration import (
    Governor,
    configure_soft_numa,
    read_affinity,
    read_soft_numa,
    set_affinity,
)
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.workloads.interface import Obstacle

T = TypeVar("T", bool, str)

_AT_ONCE = Quiet(cpu_percent=100, for_s=0, timeout_s=1)


@dataclass(frozen=True)
class Boot:
    """A boot of an arm on a VM of the run, planned or running, for which an instance's settings
    are needed.
    """

    study: Study
    arm: Arm
    vm: Vm
    prediction: Prediction


@dataclass(frozen=True)
class State(Generic[T]):
    """A setting's value, None where this version lacks it; and whether it still needs a restart."""

    value: T | None
    needs_restart: bool


class InstanceSetting(ABC, Generic[T]):
    """A setting of SQL Server that a study may change. Subclasses supply what differs."""

    key: ClassVar[str]
    """Its name in baselines, changes and audit lines."""

    words: ClassVar[str]
    """Its name for people, in audit lines and messages."""

    at_next_start: ClassVar[bool]
    """Whether it takes effect at SQL Server's next start, and must be set before the boot that needs it."""

    @abstractmethod
    def is_changed_by(self, study: Study) -> bool:
        """Whether the study changes it, so that it is part of the baseline."""

    @abstractmethod
    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> T:
        """Its value before the run. Raises PreflightBlocked where it could not be restored."""

    @abstractmethod
    def read(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """Its present value; a restart is needed if SQL Server did not start with `wanted`."""

    @abstractmethod
    def write(self, connection: pyodbc.Connection, wanted: T) -> State[T]:
        """Set it and read it back. Raises SqlFailed, PrivilegeMissing."""

    @abstractmethod
    def by_hand(self, wanted: T) -> str:
        """How a person sets it, for the end of an error message."""

    def shown(self, value: T | None) -> str:
        return str(value)

    def wanted_by(self, boot: Boot, server: SqlServer, connection: pyodbc.Connection) -> T | None:
        """The value that a planned boot needs, read during the boot before it; None: nothing to set."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def wanted_for_plan(self, boot: Boot) -> T:
        """The same for a plan that has no server to read from."""
        raise NotImplementedError(f"{self.key} is not set before a boot")

    def mismatch(self, boot: Boot, server: SqlServer, journal: Journal) -> str | None:
        """What is wrong with it in this boot, as a sentence; it is then set for the next boot."""
        del boot, server, journal
        return None

    def baseline_of(self, vm: Vm) -> T | None:
        """Its value before the run; None for a run that does not change it."""
        return cast("T | None", baseline_guest(vm).get(self.key))

    def is_set_for(self, boot: Boot) -> bool:
        """Whether this run sets it for each boot as the arm needs."""
        return self.at_next_start and self.baseline_of(boot.vm) is not None

    def switch_for(self, boot: Boot, server: SqlServer, journal: Journal) -> None:
        """Set it for the next boot, one for which `is_set_for`, while the present one still runs.

        Does nothing if the server does not answer: `mismatch` then rejects the boot and sets it for the next.
        """
        with suppress(SqlUnreachable, LoginRefused), connect(server) as connection:
            wanted = self.wanted_by(boot, server, connection)
            if wanted is not None:
                self.set(connection, wanted, journal)

    def planned_for(self, boot: Boot, server: SqlServer | None) -> Edit | None:
        """What `switch_for` would change; None for nothing, or for a server that does not answer.

        Without a server, its present value is shown as unknown.
        """
        if not self.is_set_for(boot):
            return None
        if server is None:
            return Edit(self.key, NOT_KNOWN, self.wanted_for_plan(boot))
        with suppress(SqlUnreachable, LoginRefused), connect(server) as connection:
            wanted = self.wanted_by(boot, server, connection)
            now = None if wanted is None else self.read(connection, wanted).value
            return None if wanted == now else Edit(self.key, now, wanted)
        return None

    def set(self, connection: pyodbc.Connection, wanted: T, journal: Journal) -> State[T]:
        """Set it unless it has that value; returns its state afterwards."""
        now = self.read(connection, wanted)
        if now.value == wanted:
            return now
        with journal.change(self.words, [Edit(self.key, now.value, wanted)]):
            return self.write(connection, wanted)

    def switch(self, server: SqlServer, wanted: T, journal: Journal) -> State[T]:
        """The same over its own connection. Raises SqlFailed, SqlUnreachable, PrivilegeMissing."""
        with connect(server) as connection:
            return self.set(connection, wanted, journal)

    def planned(self, server: SqlServer | None, wanted: T) -> tuple[Edit | None, bool]:
        """The edit that sets it, None if it has that value; and whether SQL Server must restart then."""
        with suppress(SqlUnreachable, LoginRefused):
            if server is not None:
                with connect(server) as connection:
                    now = self.read(connection, wanted)
                edit = None if now.value == wanted else Edit(self.key, now.value, wanted)
                return edit, now.needs_restart
        return Edit(self.key, NOT_KNOWN, wanted), self.at_next_start

    def verify(self, server: SqlServer, wanted: T, deadline_s: float) -> None:
        """Wait for SQL Server. Raises SqlTimeout, and SqlFailed unless it runs with `wanted`."""
        wait_for_server(server, deadline_s)
        with connect(server) as connection:
            now = self.read(connection, wanted)
        if now.value == wanted and not now.needs_restart:
            return
        became = "is not in use" if now.value == wanted else f"is {self.shown(now.value)}"
        raise SqlFailed(
            f"{server.host}: {self.words} {became}; before the run it was {self.shown(wanted)}.",
            fix=self.by_hand(wanted),
        )


def wait_for_server(server: SqlServer, deadline_s: float, powered_on_s: float = float("inf")) -> None:
    """Wait until SQL Server of a running VM, started after the power-on, accepts logins. Raises
    SqlTimeout.
    """
    ready.wait_ready(server, database=None, powered_on_s=powered_on_s, deadline_s=deadline_s, quiet=_AT_ONCE)


class ProcessAffinitySetting(InstanceSetting[str]):
    """`AUTO`, or the CPUs it is limited to, as in `0,1,2`."""

    key = "sql.processAffinity"
    words = "process affinity"
    at_next_start = False

    def is_changed_by(self, study: Study) -> bool:
        """Whether a positive control or the workload sets it."""
        return study.control_arm is not None or "process_affinity" in study.workload.changes

    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> str:
        del vm
        return read_affinity(connection)

    def read(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        del wanted
        return State(read_affinity(connection), needs_restart=False)

    def write(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        set_affinity(connection, wanted)
        return State(wanted, needs_restart=False)

    def by_hand(self, wanted: str) -> str:
        return f"ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = {wanted}"

    def reset_to_baseline(self, vm: Vm, server: SqlServer, journal: Journal) -> None:
        """Reset it to the baseline, on a boot that may follow a control whose controller died."""
        before = self.baseline_of(vm)
        if before is not None:
            self.switch(server, before, journal)

    @contextmanager
    def put_back(self, vm: Vm, server: SqlServer, journal: Journal) -> Iterator[None]:
        """Reset it to the baseline at the end. Raises StoreError for a VM without one."""
        before = self.baseline_of(vm)
        if before is None:
            what = f"{vm.name} has no process affinity in its baseline."
            raise StoreError(what, fix="Start the run again.")
        with undo_at_end(lambda: self.switch(server, before, journal)):
            yield


PROCESS_AFFINITY = ProcessAffinitySetting()


GOVERNOR_ON, GOVERNOR_OFF = "none, Resource Governor on", "none, Resource Governor off"
"""Values in a baseline: none of our pools exists, and RECONFIGURE would leave the governor on or off."""


class ResourcePoolSetting(InstanceSetting[str]):
    """Our pool and its share; in a baseline, whether the Resource Governor was on without it."""

    key = "sql.resourcePool"
    words = "resource pool"
    at_next_start = False

    def is_changed_by(self, study: Study) -> bool:
        """Whether the workload creates one."""
        return "resource_pool" in study.workload.changes

    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> str:
        """Ignores a pool that an earlier run left: it is ours to remove."""
        del vm
        return GOVERNOR_ON if server_configuration.read_governor(connection).enabled else GOVERNOR_OFF

    def read(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        del wanted
        return State(_shown(server_configuration.read_governor(connection)), needs_restart=False)

    def write(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """Remove the pool, and set the Resource Governor as in the baseline."""
        server_configuration.remove(connection, enabled=wanted == GOVERNOR_ON)
        return State(wanted, needs_restart=False)

    def by_hand(self, wanted: str) -> str:
        last = "RECONFIGURE" if wanted == GOVERNOR_ON else "DISABLE"
        return f"DROP RESOURCE POOL {server_configuration.POOL}; ALTER RESOURCE GOVERNOR {last}"

    def hold(self, server: SqlServer, database: str, percent: int, journal: Journal) -> None:
        """Create the pool with that share and bind the database to it; does nothing where that is
        so already.
        """
        with connect(server) as connection:
            edit = self._holding(server_configuration.read_governor(connection), database, percent)
            if edit is None:
                return
            with journal.change(self.words, [edit]):
                server_configuration.hold(connection, database, percent)

    def planned_hold(self, server: SqlServer | None, database: str, percent: int) -> Edit | None:
        """What `hold` would change; None for nothing. Without a server, the present value is unknown."""
        if server is None:
            return Edit(self.key, NOT_KNOWN, _held(percent, database))
        with connect(server) as connection:
            return self._holding(server_configuration.read_governor(connection), database, percent)

    def _holding(self, found: Governor, database: str, percent: int) -> Edit | None:
        if found.pool_percent == percent and database in found.bound:
            return None
        return Edit(self.key, _shown(found), _held(percent, database))


def _shown(found: Governor) -> str:
    if found.pool_percent is not None:
        return f"{found.pool_percent}%"
    return GOVERNOR_ON if found.enabled else GOVERNOR_OFF


def _held(percent: int, database: str) -> str:
    return f"{percent}%, for {database}"


RESOURCE_POOL = ResourcePoolSetting()


class SoftNumaSetting(InstanceSetting[bool]):
    """Automatic soft-NUMA: on or off."""

    key = "sql.softNuma"
    words = "soft-NUMA"
    at_next_start = True

    def is_changed_by(self, study: Study) -> bool:
        """Whether an arm sets it."""
        return study.sets_soft_numa

    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> bool:
        """Whether it is on at the next start."""
        now = read_soft_numa(connection)
        if now is None:
            raise PreflightBlocked(
                f"An arm sets soft_numa, but SQL Server of {vm} has no automatic soft-NUMA.",
                fix="SQL Server 2016 introduced it; remove soft_numa.",
            )
        return now.configured

    def read(self, connection: pyodbc.Connection, wanted: bool) -> State[bool]:
        now = read_soft_numa(connection)
        return State(now.configured, now.in_use is not wanted) if now else State(None, needs_restart=True)

    def write(self, connection: pyodbc.Connection, wanted: bool) -> State[bool]:
        now = configure_soft_numa(connection, wanted)
        return State(now.configured, now.in_use is not wanted)

    def by_hand(self, wanted: bool) -> str:
        return f"ALTER SERVER CONFIGURATION SET SOFTNUMA {self.shown(wanted).upper()}; then restart it."

    def shown(self, value: bool | None) -> str:
        """`on` or `off`."""
        return {True: "on", False: "off", None: "missing"}[value]

    def for_arm(self, arm: Arm, vm_baseline: bool | None) -> bool | None:
        """The value for an arm's boots; `keep` is the server's own value, whichever arm was measured before.

        None for a study that does not change it, since the server's value is then not read.
        """
        return {"keep": vm_baseline, "on": True, "off": False}[arm.soft_numa]

    def wanted_by(self, boot: Boot, server: SqlServer, connection: pyodbc.Connection) -> bool | None:
        del server, connection
        return self.for_arm(boot.arm, self.baseline_of(boot.vm))

    def wanted_for_plan(self, boot: Boot) -> bool:
        return bool(self.for_arm(boot.arm, self.baseline_of(boot.vm)))

    def mismatch(self, boot: Boot, server: SqlServer, journal: Journal) -> str | None:
        want = self.for_arm(boot.arm, self.baseline_of(boot.vm))
        if want is None or not self.switch(server, want, journal).needs_restart:
            return None
        return (
            f"automatic soft-NUMA is {self.shown(not want)}, the arm needs {self.shown(want)}; "
            "it is switched for the next boot"
        )


SOFT_NUMA = SoftNumaSetting()


_PROBE_S = 1.0


def node_ports(study: Study, server: SqlServer) -> tuple[int, ...]:
    """The ports to map: the VM's in the inventory, else the study's."""
    named: tuple[int, ...] = getattr(study.workload, "ports", ())
    return server.node_ports[: len(named)] if len(server.node_ports) >= len(named) else named


def obstacles(study: Study, server: SqlServer, connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """Everything that prevents mapping this server's ports, checked before the first change."""
    if not TCP_PORTS.is_changed_by(study):
        return
    if server_configuration.is_linux(connection):
        yield Obstacle(
            "SQL Server runs on Linux, where ports cannot be mapped to NUMA nodes.", "Use a Windows guest."
        )
        return
    if not sql_facts.read_permissions(connection).sysadmin:
        yield Obstacle(
            "The login is not a member of sysadmin, so it can neither map ports nor empty the buffer pool.",
            "ALTER SERVER ROLE sysadmin ADD MEMBER the login, for the study's time.",
        )
        return
    yield from _setting_obstacles(server_configuration.read_settings(connection))
    taken = server_configuration.listening(connection)
    for port in node_ports(study, server):
        if port in taken or _answers(server.host, port):
            yield Obstacle(
                f"Port {port} of {server.host} is already in use: SQL Server would not start with it.",
                "Name free ports in workload.ports, or in the inventory's vnuma_sql.node_ports.",
            )


def _setting_obstacles(now: server_configuration.TcpSettings) -> Iterator[Obstacle]:
    """A setting that takes no further port. Preflight writes nothing, so write permission is not tested."""
    if not now.all_addresses:
        yield Obstacle(
            "SQL Server listens on individual addresses (Listen All is No), so ports set for all "
            "addresses have no effect.",
            "Set Listen All to Yes in SQL Server Configuration Manager, TCP/IP, and restart SQL Server.",
        )
    if not now.ports or now.dynamic:
        yield Obstacle(
            f"SQL Server does not have exactly one fixed TCP port (TcpPort '{now.ports or ''}', "
            f"TcpDynamicPorts '{now.dynamic or ''}'), so no port can be added.",
            f"Set TCP Port to 1433 and leave TCP Dynamic Ports blank: {server_configuration.BY_HAND}.",
        )


def _answers(host: str, port: int) -> bool:
    """Whether anything accepts connections there."""
    with suppress(OSError), socket.create_connection((host, port), timeout=_PROBE_S):
        return True
    return False


class TcpPortsSetting(InstanceSetting[str]):
    """The TcpPort setting for all addresses: `1433`, or several ports with their node masks."""

    key = "sql.tcpPorts"
    words = "TCP ports"
    at_next_start = True

    def is_changed_by(self, study: Study) -> bool:
        """Whether the study maps ports."""
        return "tcp_ports" in study.workload.changes

    def read_baseline(self, connection: pyodbc.Connection, vm: str) -> str:
        setting = server_configuration.read_settings(connection).ports
        if not setting:
            raise PreflightBlocked(
                f"SQL Server of {vm} has no fixed TCP port, so no port can be added.",
                fix=f"Set it: {server_configuration.BY_HAND}.",
            )
        return setting

    def read(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """Whether SQL Server listens on exactly those ports; only connections show their nodes."""
        in_use = server_configuration.listening(connection) == frozenset(ports_of(wanted))
        return State(server_configuration.read_settings(connection).ports, not in_use)

    def write(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """See `InstanceSetting`. Masks may differ even where ports do not, so a restart is always needed."""
        server_configuration.write_ports(connection, wanted)
        return State(wanted, needs_restart=True)

    def by_hand(self, wanted: str) -> str:
        return f"Set TCP Port to {wanted} ({server_configuration.BY_HAND}), then restart SQL Server."

    def wanted_by(self, boot: Boot, server: SqlServer, connection: pyodbc.Connection) -> str | None:
        """Mapped to the boot's predicted nodes; None if it has only one."""
        nodes = _nodes_to_come(boot, connection)
        return self._mapped(boot, server, nodes) if len(nodes) > 1 else None

    def wanted_for_plan(self, boot: Boot) -> str:
        del boot
        return "mapped to this boot's nodes"

    def mismatch(self, boot: Boot, server: SqlServer, journal: Journal) -> str | None:
        if not self.is_set_for(boot):
            return None
        with connect(server) as connection:
            nodes = buffer_pool.sqlos_nodes(connection)
            if len(nodes) < 2:
                return "SQL Server sees one memory node, so a second port has no node to map to"
            wanted = self._mapped(boot, server, nodes)
            if self.set(connection, wanted, journal).needs_restart:
                return f"its TCP ports are not mapped as {wanted}; they will be mapped for the next boot"
        return None

    def _mapped(self, boot: Boot, server: SqlServer, nodes: Mapping[int, tuple[int, ...]]) -> str:
        return mapped(str(self.baseline_of(boot.vm)), node_ports(boot.study, server), nodes)


TCP_PORTS = TcpPortsSetting()


def _nodes_to_come(boot: Boot, connection: pyodbc.Connection) -> dict[int, tuple[int, ...]]:
    """SQLOS nodes by memory node, numbered one after the other, evenly, with the next boot's soft-NUMA."""
    soft_numa = SOFT_NUMA.for_arm(boot.arm, SOFT_NUMA.baseline_of(boot.vm))
    if soft_numa is None:
        found = read_soft_numa(connection)
        soft_numa = found is not None and found.configured
    memory_nodes = boot.prediction.vnuma_nodes
    each = max(1, boot.prediction.cpu_nodes(soft_numa=soft_numa) // max(1, memory_nodes))
    return {node: tuple(range(node * each, (node + 1) * each)) for node in range(memory_nodes)}


SETTINGS: tuple[InstanceSetting[Any], ...] = (SOFT_NUMA, PROCESS_AFFINITY, RESOURCE_POOL, TCP_PORTS)


Baselined = Mapping[InstanceSetting[Any], bool | str]
"""Settings with their values before the run."""


def guest_of(study: Study, target: Target) -> GuestReader:
    """Where the baseline of the settings that the study changes inside the guest is read.

    A boot resets what a study sets through a shell, so none of that is read.
    """
    if "sql_server" not in study.workload.needs:
        return GuestReader(target.name, dict)
    return GuestReader(sql_server(target).where, lambda: read_baseline(study, target))


def read_baseline(study: Study, target: Target) -> dict[str, object]:
    """Present values, by key, of the settings that the study changes.

    Raises PreflightBlocked where one cannot be read, since it could not be restored either.
    """
    changed = [setting for setting in SETTINGS if setting.is_changed_by(study)]
    if not changed:
        return {}
    try:
        with connect(sql_server(target)) as connection:
            return {setting.key: setting.read_baseline(connection, target.name) for setting in changed}
    except (SqlUnreachable, LoginRefused) as error:
        words = ", ".join(setting.words for setting in changed)
        raise PreflightBlocked(
            f"The study changes settings of SQL Server, so their values must be known first ({words}): "
            f"{error.what}",
            fix="Start the VM and SQL Server before the run.",
        ) from error


def to_restore(store: Store, run: Run, vm: Vm) -> Baselined:
    """The settings that the run restores on this VM; none if its audit log shows that it changed none."""
    if not changed_sql_server(store, run, vm):
        return {}
    before = {setting: setting.baseline_of(vm) for setting in SETTINGS}
    return {setting: value for setting, value in before.items() if value is not None}
