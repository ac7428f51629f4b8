"""Beliefs about SQL Server: the parts of a batch's answer and their order, system views, values in them."""

from __future__ import annotations

from datetime import datetime

import pytest

from vnuma.contract.sql import AskedSql
from vnuma.contract.suite import Differs, expect, source
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.statistics_time import EXECUTION, PARSE_AND_COMPILE, parse_messages
from vnuma.sqlserver.instance.record import SINCE, VIEWS

_DOCS = "https://learn.microsoft.com/sql/"
_TSQL = f"{_DOCS}t-sql/"
_TIME = f"{_TSQL}statements/set-statistics-time-transact-sql"
_SETS = f"{_DOCS}odbc/reference/syntax/sqlmoreresults-function"
_ERRORS = f"{_DOCS}relational-databases/errors-events/database-engine-events-and-errors"
_VIEWS = f"{_DOCS}relational-databases/system-"
_DMV = f"{_VIEWS}dynamic-management-views/sys-"
_PROPERTY = f"{_TSQL}functions/serverproperty-transact-sql"
_ON, _OFF = "SET STATISTICS TIME ON", "SET STATISTICS TIME OFF"


def _timings(asked: AskedSql, batch: str) -> list[int]:
    asked.events(_ON)
    try:
        events = asked.events(batch)
    finally:
        asked.events(_OFF)
    return [event.number for event in events if event.kind == "message"]


@source(_TIME)
def test_time_on_is_silent(asked: AskedSql) -> None:
    """`SET STATISTICS TIME ON` itself sends no message."""
    expect([str(event) for event in asked.events(_ON)], [])


@source(_TIME)
def test_time_off_is_silent(asked: AskedSql) -> None:
    """After `SET STATISTICS TIME OFF` a statement sends no message."""
    asked.events(_ON)
    asked.events(_OFF)
    expect([event.number for event in asked.events("SELECT 1 AS a") if event.kind != "rows"], [])


@source(_TIME)
def test_time_parse_comes_first(asked: AskedSql) -> None:
    """Message 3613 (parse and compile) comes before 3612 (execution)."""
    seen = _timings(asked, "SELECT 1 AS a")
    if not seen or seen[0] != PARSE_AND_COMPILE or seen[-1] != EXECUTION:
        raise Differs(str(seen))


@source(_TIME)
@pytest.mark.parametrize(
    ("what", "batch", "times"),
    [
        pytest.param(
            "a batch of two statements", "SELECT 1 AS a; SELECT 2 AS b", 2, id="one_for_each_statement"
        ),
        pytest.param(
            "a batch of one statement",
            "SELECT COUNT(*) AS n FROM sys.all_objects",
            1,
            id="one_for_one_statement",
        ),
        pytest.param(
            "`EXEC` of one statement (the statement's own, then the call's)",
            "EXEC sys.sp_executesql N'SELECT 1 AS a'",
            2,
            id="a_call_sends_its_own",
        ),
    ],
)
def test_time(asked: AskedSql, what: str, batch: str, times: int) -> None:
    """Messages 3612 of {what}: {times}."""
    expect(_timings(asked, batch).count(EXECUTION), times)


@source(_TIME)
def test_time_two_figures(asked: AskedSql) -> None:
    """3612 has two figures, each behind an equals sign, and no other number follows."""
    asked.events(_ON)
    seen = asked.events("SELECT 1 AS a")
    executions, _parses = parse_messages((f"({one.number})", one.text) for one in seen)
    expect(len(executions), 1)


@source(_SETS)
@pytest.mark.parametrize(
    ("says", "batch", "parts"),
    [
        pytest.param(
            "An error of the second statement comes once the rows of the first are read, from `nextset`.",
            "SELECT 1 AS a; SELECT 1 / 0 AS b",
            "rows 1, error 8134",
            id="error_comes_after_rows",
        ),
        pytest.param(
            "A table that does not exist (208) ends the batch: no set comes after it.",
            "SELECT * FROM dbo.no_such_table; SELECT 2 AS c",
            "error 208",
            id="missing_table_ends_it",
        ),
    ],
)
def test_batch(asked: AskedSql, says: str, batch: str, parts: str) -> None:
    """{says}"""
    expect(", ".join(map(str, asked.events(batch))), parts)


@source(f"{_TSQL}functions/error-transact-sql")
@pytest.mark.parametrize(
    ("says", "before", "number"),
    [
        pytest.param(
            "`@@ERROR` in the next batch is the number of the error that ended the last.",
            "SELECT * FROM dbo.no_such_table",
            208,
            id="error_number_is_kept",
        ),
        pytest.param(
            "`@@ERROR` is 0 after a statement without an error.",
            "SELECT 1 AS a",
            0,
            id="error_number_is_reset",
        ),
    ],
)
def test_session(asked: AskedSql, says: str, before: str, number: int) -> None:
    """{says}"""
    asked.events(before)
    expect(asked.value("SELECT @@ERROR AS n"), number)


@source(f"{_TSQL}functions/rowcount-big-transact-sql")
def test_session_row_count_is_kept(asked: AskedSql) -> None:
    """`ROWCOUNT_BIG()` in the next batch is the number of rows that the last statement sent."""
    asked.events("SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3")
    expect(asked.value("SELECT ROWCOUNT_BIG() AS n"), 3)


@source(_ERRORS)
@pytest.mark.parametrize(
    ("what", "batch", "number"),
    [
        pytest.param("An unknown column", "SELECT nothing FROM sys.databases", 207, id="unknown_column"),
        pytest.param("An unknown table", "SELECT a FROM dbo.no_such_table", 208, id="unknown_object"),
    ],
)
def test_error(asked: AskedSql, what: str, batch: str, number: int) -> None:
    """{what} is error {number}."""
    expect(asked.error(batch), number)


def _view(name: str, columns: str) -> object:
    view = name.partition(".")[0]
    page = f"{_DMV if view.startswith('dm_') else f'{_VIEWS}catalog-views/sys-'}{view.replace('_', '-')}"
    address = source(f"{page}-transact-sql")
    return pytest.param(view, columns, SINCE.get(name, 0), id=name, marks=address)


@pytest.mark.parametrize(("view", "columns", "since"), [_view(*entry) for entry in VIEWS.items()])
def test_view(asked: AskedSql, view: str, columns: str, since: int) -> None:
    """`sys.{view}` has {columns}."""
    if asked.major < since:
        pytest.skip(f"assumed since version {since}, this is {asked.major}")
    found = asked.kinds(view) or pytest.skip("the view does not exist")
    believed = dict(one.split() for one in columns.split(", "))
    if lacking := [name for name in believed if name not in found]:
        raise Differs(f"without {', '.join(lacking)}")
    known = {name: kind for name, kind in believed.items() if kind != "sql_variant"}
    expect({name: found[name] for name in known}, known)


@source(f"{_DMV}dm-os-nodes-transact-sql")
def test_fact_dac_node(asked: AskedSql) -> None:
    """One row of sys.dm_os_nodes is the node of the dedicated administrator connection (64)."""
    found = asked.rows("SELECT node_id FROM sys.dm_os_nodes WHERE node_state_desc LIKE N'%DAC%'")
    expect([row[0] for row in found], [64])


@source(f"{_DMV}dm-os-schedulers-transact-sql")
def test_fact_schedulers_counted(asked: AskedSql) -> None:
    """As many schedulers are VISIBLE ONLINE as sys.dm_os_sys_info counts."""
    seen = asked.value("SELECT COUNT(*) AS n FROM sys.dm_os_schedulers WHERE status = N'VISIBLE ONLINE'")
    expect(seen, asked.value("SELECT scheduler_count FROM sys.dm_os_sys_info"))


@source(f"{_DMV}dm-exec-connections-transact-sql")
def test_fact_own_connection(asked: AskedSql) -> None:
    """A TCP session finds itself once in sys.dm_exec_connections, with address and port of the server."""
    own = "SELECT local_net_address, local_tcp_port FROM sys.dm_exec_connections WHERE session_id = @@SPID"
    expect([bool(address) for address, _port in query.rows(asked.connection, own, str, int)], [True])


@source(f"{_DMV}dm-os-sys-info-transact-sql")
def test_fact_ticks_run_on(asked: AskedSql) -> None:
    """ms_ticks lies after sqlserver_start_time_ms_ticks: their difference is how long SQL Server is up."""
    ticks = "SELECT ms_ticks, sqlserver_start_time_ms_ticks FROM sys.dm_os_sys_info"
    now, start = query.row(asked.connection, ticks, int, int)
    expect(now > start, True)


@source(f"{_DMV}dm-os-sys-info-transact-sql")
def test_fact_start_is_a_datetime(asked: AskedSql) -> None:
    """sqlserver_start_time is a datetime."""
    seen = asked.value("SELECT sqlserver_start_time FROM sys.dm_os_sys_info")
    expect(isinstance(seen, datetime), True)


@source(_PROPERTY)
def test_fact_version_has_four_parts(asked: AskedSql) -> None:
    """ProductVersion is four whole numbers."""
    seen = str(asked.value("SELECT CAST(SERVERPROPERTY(N'ProductVersion') AS nvarchar(128)) AS v"))
    expect([part.isdecimal() for part in seen.split(".")], [True] * 4)


def _one(name: str, says: str, address: str, statement: str, wanted: object) -> object:
    return pytest.param(says, statement, wanted, id=name, marks=source(address))


_OWN_PROGRAM = "SELECT program_name FROM sys.dm_exec_sessions WHERE session_id = @@SPID"
_OWN_DATABASE = "SELECT state_desc FROM sys.databases WHERE name = DB_NAME()"
_LOCK = (
    "DECLARE @r int; EXEC @r = sys.sp_getapplock @Resource = N'vnuma contract', @LockMode = N'Exclusive', "
    "@LockOwner = N'Session', @LockTimeout = 0; SELECT @r AS r"
)


@pytest.mark.parametrize(
    ("says", "statement", "wanted"),
    [
        _one(
            "program_name",
            "The session's program_name is the APP of the connection string.",
            f"{_DMV}dm-exec-sessions-transact-sql",
            _OWN_PROGRAM,
            "vnuma",
        ),
        _one(
            "unknown_property_is_null",
            "A property that this version does not know is NULL, not an error.",
            _PROPERTY,
            "SELECT CAST(SERVERPROPERTY(N'NoSuch') AS nvarchar(9)) AS v",
            None,
        ),
        _one(
            "unknown_right_is_null",
            "A right that this version does not know is NULL, not an error.",
            f"{_TSQL}functions/has-perms-by-name-transact-sql",
            "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'NO SUCH RIGHT') AS v",
            None,
        ),
        _one(
            "own_database_is_online",
            "A database is ONLINE as soon as it is created.",
            f"{_VIEWS}catalog-views/sys-databases-transact-sql",
            _OWN_DATABASE,
            "ONLINE",
        ),
        _one(
            "applock_is_granted",
            "sp_getapplock returns 0 at once for a lock that nobody holds.",
            f"{_VIEWS}stored-procedures/sp-getapplock-transact-sql",
            _LOCK,
            0,
        ),
    ],
)
def test_fact(asked: AskedSql, says: str, statement: str, wanted: object) -> None:
    """{says}"""
    expect(asked.value(statement), wanted)
