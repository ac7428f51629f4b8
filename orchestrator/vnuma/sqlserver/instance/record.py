"""What vnuma reads in SQL Server's views, and how a batch is answered: for recordings and the contract."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import fetch, open_cursor, present, run

VIEWS = {
    "dm_os_sys_info": "cpu_count int, scheduler_count int, max_workers_count int, physical_memory_kb int, "
    "committed_kb int, committed_target_kb int, ms_ticks int, sqlserver_start_time_ms_ticks int, "
    "sqlserver_start_time datetime, affinity_type_desc str, virtual_machine_type_desc str",
    "dm_os_sys_info.soft_numa": "softnuma_configuration_desc str",
    "dm_os_sys_info.sockets": "socket_count int, cores_per_socket int, numa_node_count int",
    "dm_os_nodes": "node_id int, memory_node_id int, online_scheduler_count int, node_state_desc str, "
    "cpu_affinity_mask int",
    "dm_os_schedulers": "scheduler_id int, cpu_id int, parent_node_id int, status str, is_online bool",
    "dm_os_memory_nodes": "memory_node_id int, pages_kb int, foreign_committed_kb int",
    "dm_os_memory_clerks": "type str, memory_node_id int, pages_kb int",
    "dm_os_host_info": "host_platform str",
    "dm_os_wait_stats": "wait_type str, waiting_tasks_count int, wait_time_ms int",
    "dm_os_spinlock_stats": "name str, collisions int, spins int",
    "dm_os_performance_counters": "object_name str, counter_name str, instance_name str, cntr_value int",
    "dm_exec_sessions": "session_id int, is_user_process bool, program_name str",
    "dm_exec_connections": "session_id int, local_net_address str, local_tcp_port int, node_affinity int, "
    "encrypt_option str",
    "dm_exec_requests": "session_id int, status str, command str, wait_type str",
    "dm_exec_query_stats": "execution_count int, total_elapsed_time int, last_elapsed_time int, "
    "total_worker_time int",
    "dm_exec_session_wait_stats": "session_id int, wait_type str, wait_time_ms int",
    "dm_server_registry": "registry_key str, value_name str, value_data sql_variant",
    "configurations": "name str, value sql_variant, value_in_use sql_variant",
    "databases": "name str, state_desc str, recovery_model_desc str",
    "resource_governor_resource_pools": "pool_id int, name str",
}
"""The columns that vnuma reads, with the Python type of the documented SQL type. After a dot: columns that
later versions have (`SINCE`).
"""

SINCE = {
    "dm_os_sys_info.soft_numa": 13,
    "dm_os_sys_info.sockets": 14,
    "dm_os_host_info": 14,
    "dm_exec_session_wait_stats": 13,
}
"""The major version that brought them: 13 is SQL Server 2016."""

TIMED = (
    "SELECT 1 AS a",
    "SELECT 1 AS a; SELECT 2 AS b",
    "SELECT COUNT(*) AS n FROM sys.all_objects",
    "EXEC sys.sp_executesql N'SELECT 1 AS a'",
)
"""Batches whose answers under SET STATISTICS TIME are recorded."""

_IN_FULL = ("dm_os_nodes", "dm_os_memory_nodes", "dm_os_schedulers")
"""Views whose rows are recorded: they name nothing."""
_MOST_ROWS = 1000
_NUMBER = re.compile(r"\((-?\d{1,10})\)\s*$")


@dataclass(frozen=True)
class Event:
    """One part of a batch's answer, in order: `rows`, `message` or `error`, and its number."""

    kind: str
    number: int
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


def events(connection: pyodbc.Connection, batch: str) -> list[Event]:
    """The parts of a batch's answer up to its first error: pyodbc reads nothing after one."""
    found: list[Event] = []
    with open_cursor(connection) as cursor:
        try:
            cursor.execute(batch)
            found += _brought(cursor)
            while cursor.nextset():
                found += _brought(cursor)
            found += _brought(cursor)
        except pyodbc.Error as error:
            found += [Event("error", number) for number in natives(error)[:1]]
    return found


def _brought(cursor: pyodbc.Cursor) -> list[Event]:
    rows = [Event("rows", len(cursor.fetchall()))] if cursor.description else []
    told = [(_NUMBER.search(state), text) for state, text in cursor.messages or ()]
    return rows + [Event("message", int(number[1]), text) for number, text in told if number]


def kinds(connection: pyodbc.Connection, view: str) -> dict[str, str]:
    """The columns of VIEWS that a view has, with the Python type in which each arrives."""
    columns = present(connection, f"sys.{view}", wanted(view))
    if not columns:
        return {}
    with open_cursor(connection) as cursor:
        cursor.execute(f"SELECT TOP (0) {', '.join(columns)} FROM sys.{view}")
        return {str(name): kind.__name__ for name, kind, *_ in cursor.description}


def wanted(view: str) -> list[str]:
    """The names of a view's columns that any version has."""
    parts = [text for name, text in VIEWS.items() if name.partition(".")[0] == view]
    return [one.split()[0] for text in parts for one in text.split(", ")]


def recorded(connection: pyodbc.Connection) -> dict[str, Any]:
    """Columns with types, rows of some views, and answers to timed batches; no name is among them."""
    views = list(dict.fromkeys(name.partition(".")[0] for name in VIEWS))
    columns = {view: kinds(connection, view) for view in views}
    rows = {
        view: fetch(connection, f"SELECT TOP ({_MOST_ROWS}) {', '.join(columns[view])} FROM sys.{view}")
        for view in _IN_FULL
        if columns[view]
    }
    run(connection, "SET STATISTICS TIME ON")
    answers = {batch: events(connection, batch) for batch in TIMED}
    run(connection, "SET STATISTICS TIME OFF")
    return {
        "columns": columns,
        "rows": {view: [list(row) for row in found] for view, found in rows.items()},
        "answers": {
            batch: [[one.kind, one.number, one.text] for one in found] for batch, found in answers.items()
        },
    }
