"""SQL Server's TCP ports, mapped to NUMA nodes for a study that needs it.

The mapping takes effect at SQL Server's next start, which every cell's power-cycle causes. Its masks refer to
the nodes of the next boot, so they are written from a prediction before the power-cycle and corrected after
it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress

from vnuma.domain.study.study import Study
from vnuma.domain.vm.tcp_ports import mapped, ports_of
from vnuma.engine.audit.journal import Journal
from vnuma.engine.instance.instance_setting import Boot, InstanceSetting, State
from vnuma.engine.instance.soft_numa import SOFT_NUMA
from vnuma.errors import PreflightBlocked
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance import buffer_pool, tcp_ports
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.sqlserver.instance.server_configuration import read_soft_numa
from vnuma.workloads.interface import Obstacle

_PROBE_S = 1.0


def node_ports(study: Study, server: SqlServer) -> tuple[int, ...]:
    """The ports to map: the VM's in the inventory, else the study's."""
    named: tuple[int, ...] = getattr(study.workload, "ports", ())
    return server.node_ports[: len(named)] if len(server.node_ports) >= len(named) else named


def obstacles(study: Study, server: SqlServer, connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """Everything that prevents mapping this server's ports, checked before the first change."""
    if not TCP_PORTS.is_changed_by(study):
        return
    if tcp_ports.is_linux(connection):
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
    yield from _setting_obstacles(tcp_ports.read_settings(connection))
    taken = tcp_ports.listening(connection)
    for port in node_ports(study, server):
        if port in taken or _answers(server.host, port):
            yield Obstacle(
                f"Port {port} of {server.host} is already in use: SQL Server would not start with it.",
                "Name free ports in workload.ports, or in the inventory's vnuma_sql.node_ports.",
            )


def _setting_obstacles(now: tcp_ports.TcpSettings) -> Iterator[Obstacle]:
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
            f"Set TCP Port to 1433 and leave TCP Dynamic Ports blank: {tcp_ports.BY_HAND}.",
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
        setting = tcp_ports.read_settings(connection).ports
        if not setting:
            raise PreflightBlocked(
                f"SQL Server of {vm} has no fixed TCP port, so no port can be added.",
                fix=f"Set it: {tcp_ports.BY_HAND}.",
            )
        return setting

    def read(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """Whether SQL Server listens on exactly those ports; only connections show their nodes."""
        in_use = tcp_ports.listening(connection) == frozenset(ports_of(wanted))
        return State(tcp_ports.read_settings(connection).ports, not in_use)

    def write(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """See `InstanceSetting`. Masks may differ even where ports do not, so a restart is always needed."""
        tcp_ports.write_ports(connection, wanted)
        return State(wanted, needs_restart=True)

    def by_hand(self, wanted: str) -> str:
        return f"Set TCP Port to {wanted} ({tcp_ports.BY_HAND}), then restart SQL Server."

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
    """SQLOS nodes by memory node, predicted with the next boot's soft-NUMA."""
    soft_numa = SOFT_NUMA.for_arm(boot.arm, SOFT_NUMA.baseline_of(boot.vm))
    if soft_numa is None:
        found = read_soft_numa(connection)
        soft_numa = found is not None and found.configured
    prediction = boot.prediction
    return predicted_nodes(prediction.vnuma_nodes, prediction.cpu_nodes(soft_numa=soft_numa))


def predicted_nodes(memory_nodes: int, cpu_nodes: int) -> dict[int, tuple[int, ...]]:
    """SQLOS nodes by memory node, numbered one memory node after the other, evenly."""
    each = max(1, cpu_nodes // max(1, memory_nodes))
    return {node: tuple(range(node * each, (node + 1) * each)) for node in range(memory_nodes)}
