"""The resource pool for memory-optimised data: created once per run, removed by the restore.

It exists from the first cell to the restore, across power-cycles, with the study's database bound to it.
"""

from __future__ import annotations

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.engine.audit.journal import Journal
from vnuma.engine.instance.instance_setting import InstanceSetting, State
from vnuma.engine.lease.baseline_document import NOT_KNOWN
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance import resource_pool
from vnuma.sqlserver.instance.resource_pool import Governor

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
        return GOVERNOR_ON if resource_pool.read_governor(connection).enabled else GOVERNOR_OFF

    def read(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        del wanted
        return State(_shown(resource_pool.read_governor(connection)), needs_restart=False)

    def write(self, connection: pyodbc.Connection, wanted: str) -> State[str]:
        """Remove the pool, and set the Resource Governor as in the baseline."""
        resource_pool.remove(connection, enabled=wanted == GOVERNOR_ON)
        return State(wanted, needs_restart=False)

    def by_hand(self, wanted: str) -> str:
        last = "RECONFIGURE" if wanted == GOVERNOR_ON else "DISABLE"
        return f"DROP RESOURCE POOL {resource_pool.POOL}; ALTER RESOURCE GOVERNOR {last}"

    def hold(self, server: SqlServer, database: str, percent: int, journal: Journal) -> None:
        """Create the pool with that share and bind the database to it; does nothing where that is
        so already.
        """
        with connect(server) as connection:
            edit = self._holding(resource_pool.read_governor(connection), database, percent)
            if edit is None:
                return
            with journal.change(self.words, [edit]):
                resource_pool.hold(connection, database, percent)

    def planned_hold(self, server: SqlServer | None, database: str, percent: int) -> Edit | None:
        """What `hold` would change; None for nothing. Without a server, the present value is unknown."""
        if server is None:
            return Edit(self.key, NOT_KNOWN, _held(percent, database))
        with connect(server) as connection:
            return self._holding(resource_pool.read_governor(connection), database, percent)

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
