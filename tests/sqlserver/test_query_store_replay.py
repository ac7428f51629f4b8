"""examples/query_store/replay.py: the rows of a Query Store become batches, which a server executes."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from xml.sax.saxutils import quoteattr

import pytest

from vnuma.domain.study.study_file import parse_study
from vnuma.sqlserver.client import odbc
from vnuma.sqlserver.client.connect import SqlServer
from vnuma.workloads.command.settings import Command

HERE = Path(__file__).parents[2]
PROGRAM = HERE / "examples/query_store/replay.py"


def plan(**values: str) -> str:
    """A plan as SQL Server writes it, with these compiled values."""
    columns = "".join(
        f'<ColumnReference Column="@{name}" ParameterCompiledValue={quoteattr(value)} />'
        for name, value in values.items()
    )
    return (
        '<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan"><BatchSequence><Batch>'
        f"<Statements><StmtSimple><QueryPlan><ParameterList>{columns}</ParameterList></QueryPlan></StmtSimple>"
        "</Statements></Batch></BatchSequence></ShowPlanXML>"
    )


@pytest.fixture(scope="module")
def replay() -> ModuleType:
    """The program, imported."""
    spec = importlib.util.spec_from_file_location("replay", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("SELECT 1", {}, "SELECT 1"),
        ("SELECT [update] FROM t WHERE a = 'delete' -- into", {}, None),
        (
            "(@p int,@d decimal(18,2))SELECT @p, @d",
            {"p": "(-42)", "d": "(1.50)"},
            "EXEC sys.sp_executesql N'SELECT @p, @d', N'@p int,@d decimal(18,2)', @p = -42, @d = 1.50",
        ),
        (
            "(@who nvarchar(max))SELECT 'it''s', @who",
            {"who": "N'O''Hara'"},
            "EXEC sys.sp_executesql N'SELECT ''it''''s'', @who', N'@who nvarchar(max)', @who = N'O''Hara'",
        ),
        (
            "(@p int,@unused int)SELECT @p",
            {"p": "(1)"},
            "EXEC sys.sp_executesql N'SELECT @p', N'@p int,@unused int', @p = 1",
        ),
        (
            "(@a int)SELECT a FROM t WHERE a = @a option (PLAN PER VALUE(ObjectID = 0, QueryVariantID = 1, "
            "predicate_range([d].[dbo].[t].[a] = @a, 100.0, 1000000.0)))",
            {"a": "(5)"},
            "EXEC sys.sp_executesql N'SELECT a FROM t WHERE a = @a', N'@a int', @a = 5",
        ),
        (
            "(@a int)SELECT a FROM t WHERE a = @a OPTION (MAXDOP 1)",
            {"a": "(5)"},
            "EXEC sys.sp_executesql N'SELECT a FROM t WHERE a = @a OPTION (MAXDOP 1)', N'@a int', @a = 5",
        ),
    ],
)
def test_a_query_becomes_a_batch_with_its_plans_parameters(
    replay: ModuleType, text: str, values: dict[str, str], expected: str | None
) -> None:
    """None: the text itself."""
    assert replay.batch(text, plan(**values), writes=False) == (expected or text)


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        ("(123456789)", "123456789"),
        ("(12.50)", "12.50"),
        ("($99.9500)", "$99.9500"),
        ("($-99.9500)", "$-99.9500"),
        ("(-7.0000000000000000e+000)", "-7.0000000000000000e+000"),
        ("'2020-01-15 10:20:30.1234567 +05:30'", "'2020-01-15 10:20:30.1234567 +05:30'"),
        ("N'\u4fdd\u7559'", "N'\u4fdd\u7559'"),
        ("{guid'6F9619FF-8B86-D011-B42D-00C04FC964FF'}", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'"),
        ("0x0102030405060708", "0x0102030405060708"),
        ("NULL", "NULL"),
        ("(--5)", None),
        ("N'cut off at the end", None),
    ],
)
def test_a_value_has_the_forms_of_real_plans(replay: ModuleType, value: str, argument: str | None) -> None:
    """As published plans show them for each type; None: it is not a literal."""
    with nullcontext() if argument else pytest.raises(replay.NotReplayable):
        assert replay.literal(value) == argument


def test_a_parameter_of_a_function_inside_a_plan_is_not_the_querys(replay: ModuleType) -> None:
    """A plan may hold those of the functions that it calls, with parameters of the same names."""
    inner = plan(p="(9)").partition("<BatchSequence><Batch>")[2].partition("</Batch>")[0]
    whole = plan(p="(1)").replace("</QueryPlan>", f'</QueryPlan><UDF ProcName="f">{inner}</UDF>')

    assert replay.compiled(whole) == {"@p": "(1)"}


def test_a_query_of_a_cursor_is_left_out_for_that_reason(replay: ModuleType) -> None:
    """Its plan has the parameters elsewhere, though they have values."""
    cursor = plan(p="(1)").replace("StmtSimple", "StmtCursor")
    cursor = cursor.replace("<QueryPlan>", "<CursorPlan><Operation><QueryPlan>")
    cursor = cursor.replace("</QueryPlan>", "</QueryPlan></Operation></CursorPlan>")

    with pytest.raises(replay.NotReplayable, match="cursor"):
        replay.batch("(@p int)SELECT @p", cursor, writes=False)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (None, {}),
        ("UPDATE t SET a = 1", {}),
        ("SELECT 1 INTO t", {}),
        ("WITH w AS (SELECT 1 AS a) DELETE FROM t", {}),
        ("(@p int)SELECT @p", {}),
        ("(@p int)SELECT @p", {"p": "(1); DROP TABLE t"}),
        ("(@p int)SELECT @p", {"p": "'a'; DROP TABLE t --'"}),
        ("(@p int SELECT @p", {"p": "(1)"}),
        ("SELECT [a]]--] INTO dbo.x FROM t", {}),
        ("SELECT x=1INTO t", {}),
        ("SELECT NEXT VALUE FOR dbo.s", {}),
        ("SELECT * FROM OPENQUERY(srv, 'DELETE FROM t')", {}),
        ("SELECT * FROM #t", {}),
        ("SELECT @a + 1", {}),
    ],
)
def test_what_may_write_or_lacks_a_value_is_left_out(
    replay: ModuleType, text: str | None, values: dict[str, str]
) -> None:
    """A value that is not a literal would be executed."""
    with pytest.raises(replay.NotReplayable):
        replay.batch(text, plan(**values), writes=False)


def test_the_heaviest_queries_are_those_with_the_most_cpu_time_over_all_plans(replay: ModuleType) -> None:
    """The parameters are those of the plan that was executed most often."""
    text = "(@p int)SELECT @p"
    rows = [
        (1, "SELECT 1", None, 1000, 5e6, 0),
        (2, text, plan(p="(7)"), 10, 4e6, 0),
        (2, text, plan(p="(8)"), 20, 3e6, 0),
        (3, "SELECT 3", None, 1, 1.0, 0),
        (4, "SELECT 4", None, 1, 9e6, 77),
    ]

    found = list(replay.heaviest(rows, top=2, writes=False))

    assert [(one["query_id"], one["cpu_s"], "batch" in one) for one in found] == [
        (4, 9, False),
        (2, 7, True),
        (1, 5, True),
    ]
    assert found[1]["batch"].endswith("@p = 8")


def replayed(server: SqlServer, queries: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the program against a server, for half a second."""
    connection = (
        f"DRIVER={server.driver.name};SERVER={server.host};PORT={server.port};UID={server.user};"
        f"PWD={server.password};TDS_Version=7.4;Encryption=require"
    )
    return subprocess.run(
        [sys.executable, PROGRAM, "run", queries, "--seconds", "0.5", *options],
        env=odbc.environment() | {"REPLAY_CONNECTION": connection},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_study_reads_the_figure_of_a_replay(
    replay: ModuleType, server: SqlServer, tmp_path: Path
) -> None:
    """Two users, on the lab's SQL Server."""
    rows = [(1, "SELECT 1", None, 3, 2.0, 0), (2, "(@p int)SELECT @p + 1", plan(p="(41)"), 1, 1.0, 0)]
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps(list(replay.heaviest(rows, 20, writes=False))))
    study = HERE / "studies/query_store.yml"
    workload = parse_study(study.read_text(), str(study)).workload
    assert isinstance(workload, Command)

    done = replayed(server, queries, "--users", "2", "--ramp", "0.1")

    assert done.returncode == 0, done.stderr
    assert workload.figure.read(done.stdout) > 0


def test_a_query_that_fails_ends_the_replay(server: SqlServer, tmp_path: Path) -> None:
    """The figure of the others is none."""
    queries = tmp_path / "queries.json"
    queries.write_text(json.dumps([{"query_id": 1, "executions": 1, "batch": "SELECT * FROM dbo.nowhere"}]))

    done = replayed(server, queries, "--users", "1", "--ramp", "0")

    assert (done.returncode, done.stdout) == (1, "")
    assert set(re.findall(r"\[(\w{5})\]", done.stderr)) == {"42S02"}  # SQLSTATE: table or view not found
