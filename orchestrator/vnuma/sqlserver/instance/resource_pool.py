"""Our resource pool for memory-optimised data, which limits its share of SQL Server's memory.

A binding takes effect when the database next comes online. RECONFIGURE also enables the Resource Governor, so
its state is restored too. Source:
https://learn.microsoft.com/sql/relational-databases/in-memory-oltp/bind-a-database-with-memory-optimized-tables-to-a-resource-pool
"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value, where
from vnuma.sqlserver.database.dataset_sql import identifier, literal
from vnuma.sqlserver.database.ownership import require_ours

POOL = "vnuma_pool"

_POOL_PERCENT = f"SELECT max_memory_percent FROM sys.resource_governor_resource_pools WHERE name = N'{POOL}'"
_ENABLED = "SELECT CAST(is_enabled AS int) AS enabled FROM sys.resource_governor_configuration"
_PENDING = (
    "SELECT CAST(is_reconfiguration_pending AS int) AS pending FROM sys.dm_resource_governor_configuration"
)
_BOUND = (
    "SELECT d.name FROM sys.databases AS d JOIN sys.resource_governor_resource_pools AS p "
    f"ON p.pool_id = d.resource_pool_id WHERE p.name = N'{POOL}'"
)
_EDITION = "SELECT CAST(SERVERPROPERTY(N'EngineEdition') AS int) AS engine_edition"
_ENTERPRISE = 3


@dataclass(frozen=True)
class Governor:
    """The Resource Governor: on or off, pending changes of others, and our pool's share."""

    enabled: bool
    pending: bool
    pool_percent: int | None
    bound: tuple[str, ...]


def has_governor(connection: pyodbc.Connection) -> bool:
    """Whether the edition has a Resource Governor: Enterprise, Developer and Evaluation do."""
    return bool(value(connection, _EDITION) == _ENTERPRISE)


def read_governor(connection: pyodbc.Connection) -> Governor:
    """Its present state. Raises PrivilegeMissing."""
    percents = answers.rows(connection, _POOL_PERCENT, int)
    return Governor(
        enabled=bool(value(connection, _ENABLED)),
        pending=bool(value(connection, _PENDING)),
        pool_percent=percents[0][0] if percents else None,
        bound=tuple(name for (name,) in answers.rows(connection, _BOUND, str)),
    )


def hold(connection: pyodbc.Connection, database: str, percent: int) -> None:
    """Create the pool with that share and bind our database. Raises SqlFailed, PrivilegeMissing."""
    now = read_governor(connection)
    if now.pool_percent != percent:
        verb = "CREATE" if now.pool_percent is None else "ALTER"
        run(connection, f"{verb} RESOURCE POOL {POOL} WITH (MAX_MEMORY_PERCENT = {percent})")
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
    if database not in now.bound:
        run(connection, f"EXEC sys.sp_xtp_bind_db_resource_pool {literal(database)}, {literal(POOL)}")
        _restart_database(connection, database)


def remove(connection: pyodbc.Connection, *, enabled: bool) -> None:
    """Remove the pool, and leave the Resource Governor on or off as it was.

    Unbinds and restarts our database if it is still bound. Raises ForeignDatabase for another's, SqlFailed
    for a wrong result.
    """
    now = read_governor(connection)
    for database in now.bound:
        require_ours(connection, database)
        run(connection, f"EXEC sys.sp_xtp_unbind_db_resource_pool {literal(database)}")
        _restart_database(connection, database)
    if now.pool_percent is not None:
        run(connection, f"DROP RESOURCE POOL {POOL}")
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
    if not enabled and read_governor(connection).enabled:
        run(connection, "ALTER RESOURCE GOVERNOR DISABLE")
    require_removed(connection, enabled=enabled)


def require_removed(connection: pyodbc.Connection, *, enabled: bool) -> None:
    """Raise SqlFailed if our pool exists, or the Resource Governor is not as given."""
    now = read_governor(connection)
    if now.pool_percent is not None or now.enabled is not enabled:
        raise SqlFailed(
            f"{where(connection)}: the pool {POOL} or the Resource Governor differs from before: {now}.",
            fix=f"DROP RESOURCE POOL {POOL}; ALTER RESOURCE GOVERNOR "
            f"{'RECONFIGURE' if enabled else 'DISABLE'}",
        )


def _restart_database(connection: pyodbc.Connection, database: str) -> None:
    """Take it offline and online again, which makes a binding effective."""
    name = identifier(database)
    run(connection, f"ALTER DATABASE {name} SET OFFLINE WITH ROLLBACK IMMEDIATE")
    run(connection, f"ALTER DATABASE {name} SET ONLINE")
