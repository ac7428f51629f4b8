"""Who else uses a SQL Server."""

from __future__ import annotations

from dataclasses import replace

from tests.sqlserver.support import LabFactory, server_of, vm
from vnuma.domain.vm.surroundings import ServerUse
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.endpoint import read_use


def test_a_server_of_our_own_is_used_by_nobody(connection: pyodbc.Connection) -> None:
    """Our own session and the server's do not count."""
    assert replace(read_use(connection), side=None) == ServerUse(machine_name="SQL16")


def test_every_use_is_seen_with_what_hangs_on_it(lab: LabFactory) -> None:
    """Groups, cluster, replication, log shipping, backups and sessions, each by its names."""
    use = {
        "availability_group": ["sales"],
        "clustered": True,
        "published": ["orders"],
        "log_shipped": ["stock"],
        "backups": ["sales"],
        "sessions": ["SSMS", "SQLAgent - Job"],
    }
    sql = {"version": "13.0.5026.0", "edition": "Developer", "use": use}
    with connect(server_of(lab({"vms": [vm(sql=sql)]}))) as connection:
        assert replace(read_use(connection), side=None) == ServerUse(
            machine_name="SQL16",
            availability_groups=True,
            replica_databases=("sales",),
            clustered=True,
            replicated=("orders",),
            log_shipped=("stock",),
            backups=("BACKUP DATABASE sales",),
            sessions=("SSMS", "SQLAgent - Job"),
        )
