"""Assumptions about system views: their columns by version, and their values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from vnuma.domain.contract.belief import Belief, DiffersError, NotEvaluableError, expect
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.contract.belief import BELIEFS, Asked

_VIEWS = "https://learn.microsoft.com/sql/relational-databases/system-"
_DMV = f"{_VIEWS}dynamic-management-views/"
_TSQL = "https://learn.microsoft.com/sql/t-sql/"


def _has(view: str, names: tuple[str, ...]) -> Callable[[Asked], str]:
    def look(asked: Asked) -> str:
        if asked.value(f"SELECT OBJECT_ID(N'{view}') AS id") is None:
            raise NotEvaluableError("the view does not exist")
        found = answers.present(asked.connection, view, names)
        lacking = [name for name in names if name not in found]
        if lacking:
            raise DiffersError(f"without {', '.join(lacking)}")
        asked.rows(f"SELECT TOP (1) {', '.join(names)} FROM {view}")
        return f"{len(names)} columns"

    return look


def _columns(view: str, names: str, since: int = 0, suffix: str = "") -> None:
    base = f"{_DMV}sys-" if view.startswith("dm_") else f"{_VIEWS}catalog-views/sys-"
    listed = tuple(names.split())
    says = f"`sys.{view}` has {', '.join(listed)}."
    source = f"{base}{view.replace('_', '-')}-transact-sql"
    BELIEFS.add(Belief(f"view.{view}{suffix}", says, source, _has(f"sys.{view}", listed), since))


_columns(
    "dm_os_sys_info",
    "cpu_count scheduler_count max_workers_count physical_memory_kb committed_kb committed_target_kb "
    "ms_ticks sqlserver_start_time_ms_ticks sqlserver_start_time affinity_type_desc "
    "virtual_machine_type_desc",
)
_columns("dm_os_sys_info", "softnuma_configuration_desc", 13, ".soft_numa")
_columns("dm_os_sys_info", "socket_count cores_per_socket numa_node_count", 14, ".sockets")
_columns("dm_os_nodes", "node_id memory_node_id online_scheduler_count node_state_desc cpu_affinity_mask")
_columns("dm_os_schedulers", "scheduler_id cpu_id parent_node_id status is_online")
_columns("dm_os_memory_nodes", "memory_node_id pages_kb foreign_committed_kb")
_columns("dm_os_memory_clerks", "type memory_node_id pages_kb")
_columns("dm_os_host_info", "host_platform", 14)
_columns("dm_os_wait_stats", "wait_type waiting_tasks_count wait_time_ms")
_columns("dm_os_spinlock_stats", "name collisions spins")
_columns("dm_os_performance_counters", "object_name counter_name instance_name cntr_value")
_columns("dm_exec_sessions", "session_id is_user_process program_name")
_columns("dm_exec_connections", "session_id local_net_address local_tcp_port node_affinity encrypt_option")
_columns("dm_exec_requests", "session_id status command wait_type")
_columns("dm_exec_query_stats", "execution_count total_elapsed_time last_elapsed_time total_worker_time")
_columns("dm_exec_session_wait_stats", "session_id wait_type wait_time_ms", 13)
_columns("dm_server_registry", "registry_key value_name value_data")
_columns("configurations", "name value value_in_use")
_columns("databases", "name state_desc recovery_model_desc")
_columns("resource_governor_resource_pools", "pool_id name")


@BELIEFS.declare("fact.dac_node", f"{_DMV}sys-dm-os-nodes-transact-sql")
def _dac_node(asked: Asked) -> str:
    """One row of sys.dm_os_nodes is the node of the dedicated administrator connection (64)."""
    found = asked.rows("SELECT node_id FROM sys.dm_os_nodes WHERE node_state_desc LIKE N'%DAC%'")
    return expect([row[0] for row in found], [64])


@BELIEFS.declare("fact.schedulers_counted", f"{_DMV}sys-dm-os-schedulers-transact-sql")
def _schedulers(asked: Asked) -> str:
    """As many schedulers are VISIBLE ONLINE as sys.dm_os_sys_info counts."""
    seen = asked.value("SELECT COUNT(*) AS n FROM sys.dm_os_schedulers WHERE status = N'VISIBLE ONLINE'")
    return expect(seen, asked.value("SELECT scheduler_count FROM sys.dm_os_sys_info"))


@BELIEFS.declare("fact.own_connection", f"{_DMV}sys-dm-exec-connections-transact-sql")
def _own_connection(asked: Asked) -> str:
    """A TCP session finds itself once in sys.dm_exec_connections, with address and port of the server."""
    own = "SELECT local_net_address, local_tcp_port FROM sys.dm_exec_connections WHERE session_id = @@SPID"
    found = answers.rows(asked.connection, own, str, int)
    return expect([bool(address) for address, _port in found], [True])


@BELIEFS.declare("fact.program_name", f"{_DMV}sys-dm-exec-sessions-transact-sql")
def _program_name(asked: Asked) -> str:
    """The session's program_name is the APP of the connection string."""
    own = "SELECT program_name FROM sys.dm_exec_sessions WHERE session_id = @@SPID"
    return expect(asked.value(own), "vnuma")


@BELIEFS.declare("fact.ticks_run_on", f"{_DMV}sys-dm-os-sys-info-transact-sql")
def _ticks(asked: Asked) -> str:
    """ms_ticks lies after sqlserver_start_time_ms_ticks: their difference is how long SQL Server is up."""
    ticks = "SELECT ms_ticks, sqlserver_start_time_ms_ticks FROM sys.dm_os_sys_info"
    now, start = answers.row(asked.connection, ticks, int, int)
    return expect(now > start, True)


@BELIEFS.declare("fact.start_is_a_datetime", f"{_DMV}sys-dm-os-sys-info-transact-sql")
def _start(asked: Asked) -> str:
    """sqlserver_start_time is a datetime."""
    seen = asked.value("SELECT sqlserver_start_time FROM sys.dm_os_sys_info")
    return expect(isinstance(seen, datetime), True)


@BELIEFS.declare("fact.version_has_four_parts", f"{_TSQL}functions/serverproperty-transact-sql")
def _version(asked: Asked) -> str:
    """ProductVersion is four whole numbers."""
    seen = str(asked.value("SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS v"))
    if [part.isdecimal() for part in seen.split(".")] != [True] * 4:
        raise DiffersError("another form")
    return seen


@BELIEFS.declare("fact.unknown_property_is_null", f"{_TSQL}functions/serverproperty-transact-sql")
def _property(asked: Asked) -> str:
    """A property that this version does not know is NULL, not an error."""
    return expect(asked.value("SELECT CAST(SERVERPROPERTY(N'NoSuch') AS nvarchar(9)) AS v"), None)


@BELIEFS.declare("fact.unknown_right_is_null", f"{_TSQL}functions/has-perms-by-name-transact-sql")
def _right(asked: Asked) -> str:
    """A right that this version does not know is NULL, not an error."""
    return expect(asked.value("SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'NO SUCH RIGHT') AS v"), None)


@BELIEFS.declare("fact.own_database_is_online", f"{_VIEWS}catalog-views/sys-databases-transact-sql")
def _online(asked: Asked) -> str:
    """A database is ONLINE as soon as it is created."""
    return expect(asked.value("SELECT state_desc FROM sys.databases WHERE name = DB_NAME()"), "ONLINE")


@BELIEFS.declare("fact.applock_is_granted", f"{_VIEWS}stored-procedures/sp-getapplock-transact-sql")
def _applock(asked: Asked) -> str:
    """sp_getapplock returns 0 at once for a lock that nobody holds."""
    ask = "EXEC @r = sys.sp_getapplock @Resource = N'vnuma contract', @LockMode = N'Exclusive', "
    batch = f"DECLARE @r int; {ask}@LockOwner = N'Session', @LockTimeout = 0; SELECT @r AS r"
    return expect(asked.value(batch), 0)
