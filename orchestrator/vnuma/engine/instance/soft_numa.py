"""Automatic soft-NUMA of SQL Server as a factor of an arm.

It takes effect at SQL Server's next start, which every cell's power-cycle is.
"""

from __future__ import annotations

from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Study
from vnuma.engine.audit.journal import Journal
from vnuma.engine.instance.instance_setting import Boot, InstanceSetting, State
from vnuma.errors import PreflightBlocked
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance.server_configuration import configure_soft_numa, read_soft_numa


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
