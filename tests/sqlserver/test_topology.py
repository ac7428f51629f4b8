"""What the guest shows, and the server's own facts."""

from __future__ import annotations

import pytest

from tests.sqlserver.support import LabFactory, listening, vm
from vnuma.sqlserver.client import execution
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.instance.server import read_server, read_topology, xtp_pages_kb


def test_the_papers_vm_shows_its_sockets_and_nodes(connection: pyodbc.Connection) -> None:
    """4 x 4 on ESXi 6.0: four sockets, four NUMA nodes, every scheduler online."""
    guest = read_topology(connection)

    assert (guest.vcpus, guest.sockets, guest.cores_per_socket) == (16, 4, 4)
    assert guest.numa_nodes == 4
    assert sum(node.online_schedulers for node in guest.nodes) == 16
    assert (guest.visible_online, guest.visible_offline) == (16, 0)
    assert set(guest.memory_node_kb) == {0, 1, 2, 3}


def test_soft_numa_splits_schedulers_but_not_memory(lab: LabFactory) -> None:
    """One socket of 16 cores: two nodes of SQL Server on one NUMA node are distinguished."""
    running = lab(vms=[vm(cores_per_socket=16, sql={"soft_numa": True})])
    with connect(listening(running)) as connection:
        guest = read_topology(connection)

    assert (guest.numa_nodes, guest.sql_cpu_nodes, guest.soft_numa) == (1, 2, "ON")


def test_memory_optimised_pages_lie_on_known_nodes(
    connection: pyodbc.Connection, small_dataset: DatasetSpec
) -> None:
    """Once there is data, some memory node holds it."""
    pages = xtp_pages_kb(connection)

    assert sum(pages.values()) > 0
    assert set(pages) <= {node.memory_node_id for node in read_topology(connection).nodes} | {64}


def test_the_servers_facts_are_read(connection: pyodbc.Connection) -> None:
    """Everything that decides comparability is there, with the login's permissions."""
    facts = read_server(connection)

    assert facts.version.count(".") == 3
    assert facts.edition == "Developer Edition (64-bit)"
    assert facts.cpu_count == 16
    assert facts.xtp_supported
    assert facts.uptime_s >= 0
    assert facts.lightweight_pooling is False
    assert facts.trace_flags == ()
    assert facts.permissions.reads_state
    assert facts.max_dop is not None


@pytest.mark.parametrize(
    ("version", "sockets", "waits_known"),
    [("15.0.4430.1", 4, True), ("13.0.1601.5", None, True), ("12.0.6024.0", None, False)],
    ids=["2019", "2016 RTM", "2014 SP3"],
)
def test_columns_that_a_version_lacks_are_not_known(
    lab: LabFactory, version: str, sockets: int | None, waits_known: bool
) -> None:
    """Asking an older version for them would fail; a guess in their place would be worse."""
    running = lab(vms=[vm(sql={"version": version})])
    with connect(listening(running)) as connection:
        guest, facts = read_topology(connection), read_server(connection)
        known = execution.session_waits(connection) is not None

    assert guest.sockets == sockets
    assert guest.numa_nodes == 4
    assert facts.version == version
    assert known is waits_known
