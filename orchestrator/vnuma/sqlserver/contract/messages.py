"""Assumptions about the parts of a batch's answer, and their order."""

from __future__ import annotations

from collections.abc import Callable

from vnuma.domain.contract.belief import Belief, DiffersError, expect
from vnuma.sqlserver.client.statistics_time import EXECUTION, PARSE_AND_COMPILE, parse_messages
from vnuma.sqlserver.contract.belief import BELIEFS, Asked, Event

_DOCS = "https://learn.microsoft.com/sql/"
_TIME = f"{_DOCS}t-sql/statements/set-statistics-time-transact-sql"
_ERRORS = f"{_DOCS}relational-databases/errors-events/database-engine-events-and-errors"
_ON = "SET STATISTICS TIME ON"


def _timings(asked: Asked, batch: str) -> list[int]:
    asked.events(_ON)
    try:
        events = asked.events(batch)
    finally:
        asked.events("SET STATISTICS TIME OFF")
    return [event.number for event in events if event.kind == "message"]


def _executions(asked: Asked, batch: str, wanted: int) -> str:
    return expect(_timings(asked, batch).count(EXECUTION), wanted)


@BELIEFS.declare("time.on_is_silent", _TIME)
def _on_is_silent(asked: Asked) -> str:
    """`SET STATISTICS TIME ON` itself sends no message."""
    return expect([str(event) for event in asked.events(_ON)], [])


@BELIEFS.declare("time.off_is_silent", _TIME)
def _off_is_silent(asked: Asked) -> str:
    """After `SET STATISTICS TIME OFF` a statement sends no message."""
    asked.events(_ON)
    asked.events("SET STATISTICS TIME OFF")
    return expect([event.number for event in asked.events("SELECT 1 AS a") if event.kind != "rows"], [])


@BELIEFS.declare("time.parse_comes_first", _TIME)
def _parse_comes_first(asked: Asked) -> str:
    """Message 3613 (parse and compile) comes before 3612 (execution)."""
    seen = _timings(asked, "SELECT 1 AS a")
    if not seen or seen[0] != PARSE_AND_COMPILE or seen[-1] != EXECUTION:
        raise DiffersError(str(seen))
    return str(seen)


@BELIEFS.declare("time.one_for_each_statement", _TIME)
def _one_for_each(asked: Asked) -> str:
    """A batch of two statements sends 3612 twice."""
    return _executions(asked, "SELECT 1 AS a; SELECT 2 AS b", 2)


@BELIEFS.declare("time.one_for_one_statement", _TIME)
def _one_for_one(asked: Asked) -> str:
    """A batch of one statement sends 3612 once."""
    return _executions(asked, "SELECT COUNT(*) AS n FROM sys.all_objects", 1)


@BELIEFS.declare("time.two_figures", _TIME)
def _two_figures(asked: Asked) -> str:
    """3612 has two figures, each behind an equals sign, and no other number follows."""
    asked.events(_ON)
    seen = asked.events("SELECT 1 AS a")
    found = parse_messages((f"({one.number})", one.text) for one in seen)
    return expect(len(found.execution), 1)


@BELIEFS.declare("time.a_call_sends_its_own", _TIME)
def _a_call_sends_its_own(asked: Asked) -> str:
    """`EXEC` of one statement sends 3612 twice: the statement's, then the call's."""
    return _executions(asked, "EXEC sys.sp_executesql N'SELECT 1 AS a'", 2)


@BELIEFS.declare("batch.error_comes_after_rows", f"{_DOCS}odbc/reference/syntax/sqlmoreresults-function")
def _after_rows(asked: Asked) -> str:
    """An error of the second statement comes once the rows of the first are read, from `nextset`."""
    seen = asked.events("SELECT 1 AS a; SELECT 1 / 0 AS b")
    return expect(", ".join(map(str, seen)), "rows 1, error 8134")


@BELIEFS.declare("batch.error_comes_first", f"{_DOCS}odbc/reference/syntax/sqlmoreresults-function")
def _comes_first(asked: Asked) -> str:
    """An error of the first statement comes from `execute`."""
    seen = asked.events("SELECT 1 / 0 AS b; SELECT 1 AS a")
    return expect(", ".join(map(str, seen)), "error 8134")


@BELIEFS.declare("batch.missing_table_ends_it", _ERRORS)
def _missing_table(asked: Asked) -> str:
    """A table that does not exist (208) ends the batch: no set comes after it."""
    seen = asked.events("SELECT * FROM dbo.no_such_table; SELECT 2 AS c")
    return expect([str(event) for event in seen][:2], ["error 208"])


@BELIEFS.declare("batch.print_is_a_message", f"{_DOCS}t-sql/language-elements/print-transact-sql")
def _print(asked: Asked) -> str:
    """`PRINT` comes as a message and ends nothing."""
    seen = asked.events("PRINT N'vnuma asks'; SELECT 1 AS a")
    told = ["vnuma asks" in one.text for one in seen if one.kind == "message"]
    return expect((told, Event("rows", 1) in seen), ([True], True))


@BELIEFS.declare("batch.severity_10_is_a_message", f"{_DOCS}t-sql/language-elements/raiserror-transact-sql")
def _severity_10(asked: Asked) -> str:
    """`RAISERROR` of severity 10 is a message, not an error."""
    return expect(asked.error("RAISERROR (N'vnuma asks', 10, 1)"), None)


@BELIEFS.declare("batch.severity_16_is_an_error", f"{_DOCS}t-sql/language-elements/raiserror-transact-sql")
def _severity_16(asked: Asked) -> str:
    """`RAISERROR` of severity 16 with a text is error 50000."""
    return expect(asked.error("RAISERROR (N'vnuma asks', 16, 1)"), 50000)


@BELIEFS.declare("batch.catch_knows_the_number", f"{_DOCS}t-sql/language-elements/try-catch-transact-sql")
def _catch(asked: Asked) -> str:
    """`CATCH` has the number of the error that it caught."""
    batch = (
        "DECLARE @b int; BEGIN TRY SET @b = 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS n END CATCH"
    )
    return expect(asked.value(batch), 8134)


@BELIEFS.declare("session.error_number_is_kept", f"{_DOCS}t-sql/functions/error-transact-sql")
def _error_is_kept(asked: Asked) -> str:
    """`@@ERROR` in the next batch is the number of the error that ended the last."""
    asked.events("SELECT * FROM dbo.no_such_table")
    return expect(asked.value("SELECT @@ERROR AS n"), 208)


@BELIEFS.declare("session.error_number_is_reset", f"{_DOCS}t-sql/functions/error-transact-sql")
def _error_is_reset(asked: Asked) -> str:
    """`@@ERROR` is 0 after a statement without an error."""
    asked.events("SELECT 1 AS a")
    return expect(asked.value("SELECT @@ERROR AS n"), 0)


@BELIEFS.declare("session.row_count_is_kept", f"{_DOCS}t-sql/functions/rowcount-big-transact-sql")
def _row_count(asked: Asked) -> str:
    """`ROWCOUNT_BIG()` in the next batch is the number of rows that the last statement sent."""
    asked.events("SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3")
    return expect(asked.value("SELECT ROWCOUNT_BIG() AS n"), 3)


def _ends_with(number: int, batch: str) -> Callable[[Asked], str]:
    return lambda asked: expect(asked.error(batch), number)


for _id, _number, _batch, _says in (
    ("unknown_column", 207, "SELECT nothing FROM sys.databases", "An unknown column is error 207."),
    ("unknown_object", 208, "SELECT a FROM dbo.no_such_table", "An unknown table is error 208."),
    ("unknown_database", 911, "USE no_such_database_here", "`USE` of an unknown database is error 911."),
    ("unknown_procedure", 2812, "EXEC dbo.no_such_procedure", "An unknown procedure is error 2812."),
    ("division_by_zero", 8134, "SELECT 1 / 0 AS b", "A division by zero is error 8134."),
    (
        "missing_to_drop",
        3701,
        "DROP TABLE dbo.no_such_table",
        "Dropping a table that is missing is error 3701.",
    ),
    (
        "table_exists",
        2714,
        "CREATE TABLE #asked (a int); CREATE TABLE #asked (a int)",
        "A second table with the same name is error 2714.",
    ),
    (
        "duplicate_key",
        2627,
        "CREATE TABLE #keys (a int PRIMARY KEY); INSERT INTO #keys VALUES (1); INSERT INTO #keys VALUES (1)",
        "A second row with the same primary key is error 2627.",
    ),
):
    BELIEFS.add(Belief(f"error.{_id}", _says, _ERRORS, _ends_with(_number, _batch)))
