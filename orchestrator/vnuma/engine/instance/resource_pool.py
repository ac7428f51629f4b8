"""The resource pool of a workload with memory-optimised data: in the baseline, made once a run, taken away.

It stands from the first cell to the restore, over power-cycles: the study's database is bound to it.
"""

from __future__ import annotations

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import NOT_KNOWN, RESOURCE_POOL
from vnuma.errors import LoginRefused, PreflightBlocked, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.instance import resource_pool
from vnuma.sqlserver.instance.resource_pool import Governor

GOVERNOR_ON, GOVERNOR_OFF = "none, Resource Governor on", "none, Resource Governor off"
"""What a baseline holds: there is no pool of ours, and this is what RECONFIGURE would change."""


def guest_baseline(study: Study, target: Target) -> dict[str, object]:
    """What SQL Server has now, for a study that makes a pool; empty for any other.

    Raises PreflightBlocked where it cannot be read, since it could not be put back either.
    """
    if "resource_pool" not in study.workload.changes:
        return {}
    try:
        with connect(sql_server(target)) as connection:
            enabled = resource_pool.read_governor(connection).enabled
    except (SqlUnreachable, LoginRefused) as error:
        raise PreflightBlocked(
            f"The study makes a resource pool, so SQL Server's own must be known first: {error.what}",
            fix="Start the VM and SQL Server before the run.",
        ) from error
    return {RESOURCE_POOL: GOVERNOR_ON if enabled else GOVERNOR_OFF}


def now(server: SqlServer) -> str | None:
    """What there is of it, in the words of a baseline; None for a server that does not answer."""
    try:
        with connect(server) as connection:
            return _words(resource_pool.read_governor(connection))
    except (SqlUnreachable, LoginRefused):
        return None


def _words(found: Governor) -> str:
    if found.pool_percent is not None:
        return f"{found.pool_percent}%"
    return GOVERNOR_ON if found.enabled else GOVERNOR_OFF


def hold(server: SqlServer, database: str, percent: int, journal: Journal) -> None:
    """The pool with that share, and the database bound to it; nothing is done where it is so."""
    with connect(server) as connection:
        edit = _holding(resource_pool.read_governor(connection), database, percent)
        if edit is None:
            return
        with journal.change("resource pool", [edit]):
            resource_pool.hold(connection, database, percent)


def planned_hold(server: SqlServer | None, database: str, percent: int) -> Edit | None:
    """What `hold` would change; None for nothing. Without a server to ask, what it is now is not known."""
    if server is None:
        return Edit(RESOURCE_POOL, NOT_KNOWN, _held(percent, database))
    with connect(server) as connection:
        return _holding(resource_pool.read_governor(connection), database, percent)


def _holding(found: Governor, database: str, percent: int) -> Edit | None:
    if found.pool_percent == percent and database in found.bound:
        return None
    return Edit(RESOURCE_POOL, _words(found), _held(percent, database))


def _held(percent: int, database: str) -> str:
    return f"{percent}%, for {database}"


def put_back(server: SqlServer, wanted: str, journal: Journal) -> None:
    """No pool, and the Resource Governor as the baseline says. Raises SqlFailed, SqlUnreachable."""
    enabled = wanted == GOVERNOR_ON
    with connect(server) as connection:
        found = resource_pool.read_governor(connection)
        if found.pool_percent is None and found.enabled is enabled:
            return
        with journal.change("resource pool", [Edit(RESOURCE_POOL, _words(found), wanted)]):
            resource_pool.remove(connection, enabled=enabled)


def verify(server: SqlServer, wanted: str) -> None:
    """Raises SqlFailed unless it is as the baseline says."""
    with connect(server) as connection:
        resource_pool.require_removed(connection, enabled=wanted == GOVERNOR_ON)
