"""SQL Server's TCP ports, mapped to NUMA nodes for a study that needs it: in the baseline, proven, put back.

The setting takes effect at SQL Server's next start, which every cell's power-cycle is. Its masks count the
nodes of the boot to come, so they are written by prediction before the power-cycle, and put right by what
the boot shows after it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from vnuma.domain.study.study import Study
from vnuma.domain.topology.prediction import Prediction
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.tcp_ports import mapped, ports_of
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.instance.soft_numa import wait_for_server
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import TCP_PORTS
from vnuma.errors import LoginRefused, PreflightBlocked, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance import buffer_pool, tcp_ports
from vnuma.sqlserver.instance import server as sql_facts
from vnuma.sqlserver.instance.soft_numa import read_soft_numa
from vnuma.workloads.bench import Obstacle

_PROBE_S = 1.0


def is_changed_by(study: Study) -> bool:
    """Whether the study maps ports."""
    return "tcp_ports" in study.workload.changes


def node_ports(study: Study, server: SqlServer) -> tuple[int, ...]:
    """The ports to map: the inventory's for this VM, else the study's."""
    named: tuple[int, ...] = getattr(study.workload, "ports", ())
    return server.node_ports[: len(named)] if len(server.node_ports) >= len(named) else named


def obstacles(study: Study, server: SqlServer, connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """Everything that keeps this server's ports from being mapped, asked before the first change."""
    if not is_changed_by(study):
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
                f"Port {port} of {server.host} is in use already: SQL Server would not start with it.",
                "Name free ports in workload.ports, or in the inventory's vnuma_sql.node_ports.",
            )


def _setting_obstacles(now: tcp_ports.TcpSettings) -> Iterator[Obstacle]:
    """A setting that takes no further port. Preflight writes nothing, so whether it may is not tried."""
    if not now.all_addresses:
        yield Obstacle(
            "SQL Server listens on single addresses (Listen All is No), so its ports for all addresses do "
            "nothing.",
            "Set Listen All to Yes in SQL Server Configuration Manager, TCP/IP, and restart SQL Server.",
        )
    if not now.ports or now.dynamic:
        yield Obstacle(
            f"SQL Server has no fixed TCP port alone (TcpPort '{now.ports or ''}', TcpDynamicPorts "
            f"'{now.dynamic or ''}'), so a port cannot be added to it.",
            f"Set TCP Port to 1433 and leave TCP Dynamic Ports blank: {tcp_ports.BY_HAND}.",
        )


def _answers(host: str, port: int) -> bool:
    """Whether anything takes connections there."""
    with suppress(OSError), socket.create_connection((host, port), timeout=_PROBE_S):
        return True
    return False


def guest_baseline(study: Study, target: Target) -> dict[str, object]:
    """What SQL Server has now, for a study that changes it; empty for any other.

    Raises PreflightBlocked where it cannot be read, since it could not be put back either.
    """
    if not is_changed_by(study):
        return {}
    try:
        with connect(sql_server(target)) as connection:
            setting = tcp_ports.read_settings(connection).ports
    except (SqlUnreachable, LoginRefused) as error:
        raise PreflightBlocked(
            f"The study maps SQL Server's TCP ports, so they must be known first: {error.what}",
            fix="Start the VM and SQL Server before the run.",
        ) from error
    if not setting:
        raise PreflightBlocked(
            f"SQL Server of {target.name} has no fixed TCP port, so none can be added to it.",
            fix=f"Set it: {tcp_ports.BY_HAND}.",
        )
    return {TCP_PORTS: setting}


def switch_for(
    study: Study,
    soft_numa: bool | None,
    prediction: Prediction,
    before: str | None,
    server: Callable[[], SqlServer],
    journal: Journal,
) -> None:
    """Map the ports to the nodes that the arm's boot is predicted to have, while the boot before still runs.

    `soft_numa` is what that boot will have of it; None: what SQL Server has.
    A server that does not answer is left: `mismatch` then finds the boot wrong and maps them for the next.
    """
    if before is None:
        return
    with suppress(SqlUnreachable, LoginRefused), connect(server()) as connection:
        nodes = _nodes_to_come(connection, soft_numa, prediction)
        if len(nodes) > 1:
            _write(connection, mapped(before, node_ports(study, server()), nodes), journal)


def planned_for(
    study: Study, soft_numa: bool | None, prediction: Prediction, before: str | None, server: SqlServer
) -> Edit | None:
    """What `switch_for` would set; None for nothing, or for a server that does not answer."""
    if before is None:
        return None
    with suppress(SqlUnreachable, LoginRefused), connect(server) as connection:
        nodes = _nodes_to_come(connection, soft_numa, prediction)
        setting = tcp_ports.read_settings(connection).ports
        wanted = mapped(before, node_ports(study, server), nodes) if len(nodes) > 1 else setting
        return None if wanted == setting else Edit(TCP_PORTS, setting, wanted)
    return None


def _nodes_to_come(
    connection: pyodbc.Connection, soft_numa: bool | None, prediction: Prediction
) -> dict[int, tuple[int, ...]]:
    if soft_numa is None:
        found = read_soft_numa(connection)
        soft_numa = found is not None and found.configured
    return predicted_nodes(prediction.vnuma_nodes, prediction.cpu_nodes(soft_numa=soft_numa))


def predicted_nodes(memory_nodes: int, cpu_nodes: int) -> dict[int, tuple[int, ...]]:
    """SQLOS nodes by memory node, numbered one memory node after the other, evenly."""
    each = max(1, cpu_nodes // max(1, memory_nodes))
    return {node: tuple(range(node * each, (node + 1) * each)) for node in range(memory_nodes)}


def mismatch(study: Study, before: str | None, server: SqlServer, journal: Journal) -> str | None:
    """What is wrong with this boot's ports, as a sentence; they are then mapped for the next boot."""
    if before is None:
        return None
    with connect(server) as connection:
        nodes: Mapping[int, tuple[int, ...]] = buffer_pool.sqlos_nodes(connection)
        if len(nodes) < 2:
            return "SQL Server sees one memory node, so there is none to map a second port to"
        wanted = mapped(before, node_ports(study, server), nodes)
        if _write(connection, wanted, journal) or not _in_use(connection, wanted):
            return f"its TCP ports are not mapped as {wanted}; they are mapped for the next boot"
    return None


def put_back(server: SqlServer, baseline: str, journal: Journal, *, deadline_s: float) -> bool:
    """Set them as the baseline says, on a VM that is on. True if only a restart brings it about.

    Raises SqlTimeout when SQL Server does not come up, SqlFailed, PrivilegeMissing when it does not take it.
    """
    wait_for_server(server, deadline_s)
    return _put_back(server, baseline, journal)


def try_put_back(server: SqlServer, baseline: str, journal: Journal) -> bool | None:
    """As `put_back`, without waiting; None for a server that does not answer now."""
    try:
        return _put_back(server, baseline, journal)
    except (SqlUnreachable, LoginRefused):
        return None


@dataclass(frozen=True)
class PortsNow:
    """The setting as it stands, and whether this start listens on the baseline's ports."""

    setting: str | None
    in_use: bool


def now(server: SqlServer, baseline: str) -> PortsNow | None:
    """How it stands; None for a server that does not answer."""
    try:
        with connect(server) as connection:
            return PortsNow(tcp_ports.read_settings(connection).ports, _in_use(connection, baseline))
    except (SqlUnreachable, LoginRefused):
        return None


def verify(server: SqlServer, baseline: str, *, deadline_s: float) -> None:
    """Raises SqlFailed unless SQL Server came up with the baseline's ports in use."""
    wait_for_server(server, deadline_s)
    with connect(server) as connection:
        setting = tcp_ports.read_settings(connection).ports
        right = setting == baseline and _in_use(connection, baseline)
    if not right:
        raise SqlFailed(
            f"{server.host}: SQL Server's TCP ports are {setting}, not {baseline} again, or not in use.",
            fix=f"Set TCP Port to {baseline} ({tcp_ports.BY_HAND}), then restart SQL Server.",
        )


def _put_back(server: SqlServer, baseline: str, journal: Journal) -> bool:
    with connect(server) as connection:
        return _write(connection, baseline, journal) or not _in_use(connection, baseline)


def _write(connection: pyodbc.Connection, wanted: str, journal: Journal) -> bool:
    """Set it unless it is so already; whether it was written."""
    before = tcp_ports.read_settings(connection).ports
    if before == wanted:
        return False
    with journal.change("TCP ports", [Edit(TCP_PORTS, before, wanted)]):
        tcp_ports.write_ports(connection, wanted)
    return True


def _in_use(connection: pyodbc.Connection, setting: str) -> bool:
    """Whether this start listens on exactly those ports; which nodes they lead to, connections show."""
    return tcp_ports.listening(connection) == frozenset(ports_of(setting))
