"""What design rules ask of SQL Servers: read of those that an inventory gives a login for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.server import SqlFacts
from vnuma.domain.vm.setting import Power
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.errors import EnvironmentProblem
from vnuma.logs.errorlog import read_errorlog
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.query import fetch
from vnuma.sqlserver.instance.rule_facts import read_design
from vnuma.sqlserver.instance.server import read_server, read_topology

NO_LOGIN = "the inventory has no login to SQL Server for this VM"

_LICENSING = "EXEC sys.sp_readerrorlog 0, 1, N'logical processors'"


@dataclass(frozen=True)
class Answer:
    """A SQL Server's facts, or why there are none."""

    facts: SqlFacts | None
    why: str = ""


class SqlServers:
    """The SQL Servers of an inventory, by the VM that they run in: its name or its inventory path."""

    def __init__(self, targets: Iterable[Target]) -> None:
        self._targets = {(target.hypervisor.host, target.vm): target for target in targets if target.sql}

    def read(self, vm: VmFacts, vcenter: str) -> Answer:
        """Log in and read; a server that does not answer is a reason, not an error."""
        target = self._targets.get((vcenter, vm.path)) or self._targets.get((vcenter, vm.name))
        if target is None:
            return Answer(None, NO_LOGIN)
        if vm.power is not Power.ON:
            return Answer(None, f"{vm.name} is powered off")
        try:
            with connect(sql_server(target)) as connection:
                server, topology = read_server(connection), read_topology(connection)
                design = read_design(connection, server.major)
                try:
                    rows = fetch(connection, _LICENSING)
                except EnvironmentProblem:  # no right to read the log: the rest counts all the same
                    rows = []
        except EnvironmentProblem as error:
            return Answer(None, error.what)
        text = "\n".join(str(row[-1]) for row in rows)
        return Answer(SqlFacts(server, topology, read_errorlog(text).using, **vars(design)))
