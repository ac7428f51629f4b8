"""SQL Server's process affinity: in the baseline of a study that changes it, put back, proven.

It holds for the whole instance and outlives restarts, so a controller that dies leaves it behind: the
next boot (`put_right`) and every restore put it back.
"""

from __future__ import annotations

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import NOT_KNOWN, PROCESS_AFFINITY, baseline_affinity
from vnuma.errors import LoginRefused, PreflightBlocked, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.instance import affinity
from vnuma.store.rows import Vm


def guest_baseline(study: Study, target: Target) -> dict[str, object]:
    """What SQL Server has now, for a study that changes it; empty for any other.

    Raises PreflightBlocked where it cannot be read, since it could not be put back either.
    """
    if study.control_arm is None and "process_affinity" not in study.workload.changes:
        return {}
    try:
        with connect(sql_server(target)) as connection:
            return {PROCESS_AFFINITY: affinity.read_affinity(connection)}
    except (SqlUnreachable, LoginRefused) as error:
        raise PreflightBlocked(
            f"The study changes SQL Server's process affinity, so it must be known first: {error.what}",
            fix="Start the VM and SQL Server before the run.",
        ) from error


def switch(server: SqlServer, wanted: str, journal: Journal) -> None:
    """Set it, if it is not so already. Raises SqlFailed, SqlUnreachable, PrivilegeMissing."""
    with connect(server) as connection:
        now = affinity.read_affinity(connection)
        if now != wanted:
            with journal.change("process affinity", [Edit(PROCESS_AFFINITY, now, wanted)]):
                affinity.set_affinity(connection, wanted)


def put_right(vm: Vm, server: SqlServer, journal: Journal) -> None:
    """Set it as the baseline says, on a boot that may follow a control whose controller died."""
    before = baseline_affinity(vm)
    if before is not None:
        switch(server, before, journal)


def now(server: SqlServer) -> str | None:
    """The affinity as it stands; None for a server that does not answer now."""
    try:
        with connect(server) as connection:
            return affinity.read_affinity(connection)
    except (SqlUnreachable, LoginRefused):
        return None


def planned(server: SqlServer | None, wanted: str) -> Edit | None:
    """What `switch` would change; None for nothing. Without an answer, what it is now is not known."""
    found = now(server) if server else None
    return None if found == wanted else Edit(PROCESS_AFFINITY, NOT_KNOWN if found is None else found, wanted)


def verify(server: SqlServer, wanted: str) -> None:
    """Raises SqlFailed unless SQL Server has it."""
    with connect(server) as connection:
        now = affinity.read_affinity(connection)
    if now != wanted:
        raise SqlFailed(
            f"{server.host}: SQL Server's process affinity is {now}, not {wanted} again.",
            fix=f"ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = {wanted}",
        )
