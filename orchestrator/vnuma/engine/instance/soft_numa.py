"""Automatic soft-NUMA as a factor: in the baseline, switched before a power-cycle, proven after it, put back.

It is a setting of the whole SQL Server instance that takes effect at its next start, which every cell's
power-cycle is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from vnuma.domain.arm.arm import Arm
from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.connections import sql_server
from vnuma.engine.access.target import Target
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.baseline import SOFT_NUMA
from vnuma.errors import LoginRefused, PreflightBlocked, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.instance import ready
from vnuma.sqlserver.instance.ready import QuietRule
from vnuma.sqlserver.instance.soft_numa import SoftNuma, configure_soft_numa, read_soft_numa

_AT_ONCE = QuietRule(cpu_percent=100, for_s=0, timeout_s=1)


def wanted(arm: Arm, own: bool | None) -> bool | None:
    """What an arm's boots have: with `keep` the server's `own`, whichever arm was measured before.

    None for a study that does not change it: then `own` is not known, and nothing is looked at.
    """
    return {"keep": own, "on": True, "off": False}[arm.soft_numa]


def guest_baseline(study: Study, target: Target) -> dict[str, object]:
    """What SQL Server has now, for a study that changes it; empty for any other.

    Raises PreflightBlocked where it cannot be read, since it could not be put back either.
    """
    if not study.sets_soft_numa:
        return {}
    try:
        with connect(sql_server(target)) as connection:
            now = read_soft_numa(connection)
    except (SqlUnreachable, LoginRefused) as error:
        raise PreflightBlocked(
            f"An arm sets soft_numa, so SQL Server's own setting must be known first: {error.what}",
            fix="Start the VM and SQL Server before the run, or leave soft_numa out.",
        ) from error
    if now is None:
        raise PreflightBlocked(
            f"An arm sets soft_numa, but SQL Server of {target.name} has no automatic soft-NUMA.",
            fix="It came with SQL Server 2016; leave soft_numa out.",
        )
    return {SOFT_NUMA: now.configured}


def switch_for(arm: Arm, own: bool | None, server: Callable[[], SqlServer], journal: Journal) -> None:
    """Switch it for the arm's boot, while the boot before still runs.

    A server that does not answer is left: `mismatch` then finds the boot wrong and switches it for the next.
    """
    want = wanted(arm, own)
    if want is None:
        return
    with suppress(SqlUnreachable, LoginRefused):
        _switch(server(), want, journal)


def planned_for(arm: Arm, own: bool | None, server: SqlServer) -> Edit | None:
    """What `switch_for` would set; None for nothing, or for a server that does not answer."""
    want = wanted(arm, own)
    found = None if want is None else now(server)
    if want is None or found is None or found.configured is want:
        return None
    return Edit(SOFT_NUMA, found.configured, want)


def mismatch(arm: Arm, own: bool | None, server: SqlServer, journal: Journal) -> str | None:
    """What is wrong with this boot's soft-NUMA, as a sentence; the switch is then set for the next boot."""
    want = wanted(arm, own)
    if want is None:
        return None
    now = _switch(server, want, journal)
    if now.in_use is want:
        return None
    return (
        f"automatic soft-NUMA is {_word(now.in_use)}, the arm needs {_word(want)}; it is switched for the "
        "next boot"
    )


def put_back(server: SqlServer, baseline: bool, journal: Journal, *, deadline_s: float) -> bool:
    """Set it as the baseline says, on a VM that is on. True if only a restart brings it about.

    Raises SqlTimeout when SQL Server does not come up, SqlFailed when it does not take it.
    """
    wait_for_server(server, deadline_s)
    return _switch(server, baseline, journal).in_use is not baseline


def wait_for_server(server: SqlServer, deadline_s: float, powered_on_s: float = float("inf")) -> None:
    """Until SQL Server of a VM that is on takes logins, started since the power-on. Raises SqlTimeout."""
    ready.wait_ready(server, database=None, powered_on_s=powered_on_s, deadline_s=deadline_s, quiet=_AT_ONCE)


def try_put_back(server: SqlServer, baseline: bool, journal: Journal) -> bool | None:
    """As `put_back`, without waiting; None for a server that does not answer now."""
    try:
        return _switch(server, baseline, journal).in_use is not baseline
    except (SqlUnreachable, LoginRefused):
        return None


def now(server: SqlServer) -> SoftNuma | None:
    """The switch as it stands; None for a server that does not answer now."""
    try:
        with connect(server) as connection:
            return read_soft_numa(connection)
    except (SqlUnreachable, LoginRefused):
        return None


def verify(server: SqlServer, baseline: bool, *, deadline_s: float) -> None:
    """Raises SqlFailed unless SQL Server came up with the baseline's setting in use."""
    wait_for_server(server, deadline_s)
    with connect(server) as connection:
        now = read_soft_numa(connection)
    if now != SoftNuma(baseline, baseline):
        raise SqlFailed(
            f"{server.host}: automatic soft-NUMA is not {_word(baseline)} again.",
            fix=f"ALTER SERVER CONFIGURATION SET SOFTNUMA {_word(baseline).upper()}; then restart it.",
        )


def _switch(server: SqlServer, want: bool, journal: Journal) -> SoftNuma:
    """The switch as it is after it was set, if it had to be."""
    with connect(server) as connection:
        now = read_soft_numa(connection)
        if now is not None and now.configured is want:
            return now
        before = now.configured if now else None
        with journal.change("soft-NUMA", [Edit(SOFT_NUMA, before, want)]):
            return configure_soft_numa(connection, want)


def _word(on: bool) -> str:
    return "on" if on else "off"
