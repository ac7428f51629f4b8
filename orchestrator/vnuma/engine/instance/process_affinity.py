"""SQL Server's process affinity, which a control or a workload limits on a boot. It takes effect at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vnuma.domain.study.study import Study
from vnuma.engine.audit.journal import Journal
from vnuma.engine.instance.instance_setting import InstanceSetting, State
from vnuma.engine.lease.attempt import undo_at_end
from vnuma.errors import StoreError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.instance.server_configuration import read_affinity, set_affinity
from vnuma.store.rows import Vm


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
