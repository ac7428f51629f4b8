#!/usr/bin/env python3
"""Replay the heaviest queries of a SQL Server's own Query Store, as a benchmark for the workload `command`.

replay.py collect --top 20 >queries.json   reads them, with their parameters; changes nothing
replay.py run queries.json --users 8 --seconds 60

Each user executes one query after another, drawn in production's proportions. The last line is the figure:
`replayed 123.4 executions per second`. The variable REPLAY_CONNECTION is the ODBC connection string.
Statements of procedures are left out, and those that write unless --writes is given; functions and hints are
not looked into. Each parameter has the one value that its plan was compiled with. Needs Python 3.9 or later,
pyodbc, and VIEW DATABASE STATE to collect: do that on the clone, which has the Query Store too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

COLLECT = """
WITH spent AS (
    SELECT plan_id, SUM(count_executions) AS executions, SUM(count_executions * avg_cpu_time) AS cpu_us
    FROM sys.query_store_runtime_stats
    WHERE execution_type = 0
    GROUP BY plan_id)
SELECT q.query_id, t.query_sql_text, p.query_plan, s.executions, s.cpu_us, q.object_id
FROM spent AS s
JOIN sys.query_store_plan AS p ON p.plan_id = s.plan_id
JOIN sys.query_store_query AS q ON q.query_id = p.query_id
JOIN sys.query_store_query_text AS t ON t.query_text_id = q.query_text_id
WHERE q.is_internal_query = 0
"""
"""The user's statements, with their CPU time in microseconds.

https://learn.microsoft.com/sql/relational-databases/system-catalog-views/sys-query-store-plan-transact-sql
"""

_NUMBER = re.compile(r"\(((?:-?\$?|\$-)[0-9.]+(?:[eE][+-]?[0-9]+)?)\)")
_LITERAL = re.compile(
    r"(?:-?\$?|\$-)[0-9.]+(?:[eE][+-]?[0-9]+)?|0x[0-9A-Fa-f]*|N?'(?:[^']|'')*'|NULL", re.DOTALL
)
_GUID = re.compile(r"\{guid('[0-9A-Fa-f-]{36}')\}")
_NOT_CODE = re.compile(
    r"--[^\r\n]*|/\*.*?\*/|N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]|\"(?:[^\"]|\"\")*\"", re.DOTALL
)
_READS = re.compile(r"\s*(?:SELECT|WITH)\b", re.IGNORECASE)
_WRITES = re.compile(
    r"(?<![A-Za-z_@#$])(?:INTO|INSERT|UPDATE|DELETE|MERGE|EXEC|EXECUTE|OPENQUERY|OPENROWSET|OPENDATASOURCE"
    r"|NEXT\s+VALUE)\b",
    re.IGNORECASE,
)
_VARIANT = re.compile(r"\s*\boption\s*\(\s*PLAN PER VALUE\s*\(.*\)\s*\)\s*$", re.IGNORECASE | re.DOTALL)
"""The hint that SQL Server 2022 adds to the variants of a query, and that nobody else may write.

https://learn.microsoft.com/sql/relational-databases/performance/parameter-sensitive-plan-optimization
"""
_PARAMETERS = (
    "{*}BatchSequence/{*}Batch/{*}Statements/{*}StmtSimple/{*}QueryPlan/{*}ParameterList/{*}ColumnReference"
)
"""The statement's own parameters: operators, and the plans of functions inside it, have lists of theirs."""
_CURSOR = "{*}BatchSequence/{*}Batch/{*}Statements/{*}StmtCursor"
_TEMPORARY = re.compile(r"#\w")
_VARIABLE = re.compile(r"(?<![@\w#$])@[\w#$]+")


class NotReplayable(Exception):
    """Why a query cannot be executed again."""


def split(text: str) -> tuple[str, str]:
    """A Query Store text's parameters and its statement: `(@p int)SELECT ...`. Raises NotReplayable."""
    if not text.startswith("(@"):
        return "", text
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:at], text[at + 1 :]
    raise NotReplayable("its parameters have no end")


def literal(value: str) -> str:
    """A plan's ParameterCompiledValue as an argument: `(42)` is 42. Raises NotReplayable for what is none."""
    found = _NUMBER.fullmatch(value) or _GUID.fullmatch(value)
    plain = found[1] if found else value
    if not _LITERAL.fullmatch(plain):
        raise NotReplayable(f"{value} is not a literal")
    return plain


def compiled(plan: str | None) -> dict[str, str]:
    """The values that a plan was compiled with, by parameter. Raises NotReplayable for none or a cursor's."""
    try:
        root = ET.fromstring(plan or "")
    except ET.ParseError:
        raise NotReplayable("its plan is not in the Query Store") from None
    if root.find(_CURSOR) is not None:
        raise NotReplayable("it is an API cursor")
    return {
        one.attrib["Column"]: one.attrib["ParameterCompiledValue"]
        for one in root.iterfind(_PARAMETERS)
        if "ParameterCompiledValue" in one.attrib
    }


def batch(text: str | None, plan: str | None, writes: bool) -> str:
    """What executes a query again, with the parameters of its plan. Raises NotReplayable."""
    if text is None:
        raise NotReplayable("its text is not in the Query Store")
    parameters, statement = split(_VARIANT.sub("", text))
    code = _NOT_CODE.sub(" ", statement)
    if not writes and (not _READS.match(code) or _WRITES.search(code)):
        raise NotReplayable("it may write (--writes)")
    named = re.findall(r"(?:^|,)\s*(@[^\s,()]+)", re.sub(r"\([^)]*\)", "", parameters))
    used = set(_VARIABLE.findall(code))
    if _TEMPORARY.search(code) or used - set(named):
        raise NotReplayable("it needs a temporary table or a variable of its batch")
    if not parameters:
        return statement
    values = compiled(plan)
    named = [name for name in named if name in used]
    unknown = [name for name in named if name not in values]
    if unknown:
        raise NotReplayable(f"its plan shows no value of {', '.join(unknown)}")
    given = ", ".join(f"{name} = {literal(values[name])}" for name in named)
    return f"EXEC sys.sp_executesql N'{_quoted(statement)}', N'{_quoted(parameters)}', {given}"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def heaviest(rows: Iterable[tuple[Any, ...]], top: int, writes: bool) -> Iterator[dict[str, Any]]:
    """The queries that took the most CPU time, with their executions; one without a batch says why."""
    queries: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        queries.setdefault(row[0], []).append(row)
    spent = {one: sum(float(row[4]) for row in plans) for one, plans in queries.items()}
    left = top
    for one in sorted(spent, key=lambda one: -spent[one]):
        plans = queries[one]
        _, text, plan, _, _, procedure = max(plans, key=lambda row: row[3])
        about = {"query_id": one, "cpu_s": spent[one] / 1e6, "executions": sum(row[3] for row in plans)}
        if procedure:
            yield {**about, "left_out": "it is a statement of a procedure"}
            continue
        try:
            yield {**about, "batch": batch(text, plan, writes)}
            left -= 1
        except NotReplayable as why:
            yield {**about, "left_out": str(why)}
        if not left:
            return


def connect() -> Any:
    """A connection of its own."""
    import pyodbc  # noqa: PLC0415 - its parsers work without

    return pyodbc.connect(os.environ["REPLAY_CONNECTION"], autocommit=True)


def collect(top: int, writes: bool) -> None:
    """Print the queries as JSON, and their share of the CPU time. Ends with 1 if none can be replayed."""
    rows = [tuple(row) for row in connect().execute(COLLECT)]
    found = list(heaviest(rows, top, writes))
    used = sum(one["cpu_s"] for one in found if "batch" in one)
    share = used / max(sum(float(row[4]) for row in rows) / 1e6, 1e-9)
    print(f"{share:.0%} of the recorded CPU time is replayed.", file=sys.stderr)
    for one in found:
        if "left_out" in one:
            print(f"Query {one['query_id']} is left out: {one['left_out']}.", file=sys.stderr)
    json.dump(found, sys.stdout, indent=1)
    if not used:
        sys.exit(1)


def one_user(queries: list[dict[str, Any]], seed: int, begin: float, end: float) -> int:
    """Execute queries until the end; returns how many ended between the two times, by time.monotonic().

    The seed decides the order, which is thus the same on every boot.
    """
    draw, weights, done = random.Random(seed), [one["executions"] for one in queries], 0
    connection = connect()
    while time.monotonic() < end:
        query = draw.choices(queries, weights)[0]
        try:
            cursor = connection.execute(query["batch"])
            while True:  # an error may come with any result, and between its rows
                while cursor.description and cursor.fetchmany(1000):
                    pass
                if not cursor.nextset():
                    break
        except BaseException:
            print(f"query {query['query_id']} failed: delete it from the file", file=sys.stderr)
            raise
        done += begin <= time.monotonic() <= end
    connection.close()
    return done


def run(path: str, users: int, ramp_s: float, seconds: float) -> None:
    """Let all users work, and print the executions per second. Any query's error ends it."""
    with open(path, encoding="utf-8") as file:
        queries = [one for one in json.load(file) if "batch" in one]
    if not queries:
        sys.exit(f"{path} has no query to replay")
    begin = time.monotonic() + ramp_s
    with ThreadPoolExecutor(users) as pool:
        works = [pool.submit(one_user, queries, seed, begin, begin + seconds) for seed in range(users)]
        done = sum(work.result() for work in works)
    if not done:
        sys.exit("no query ended within the time")
    print(f"{users} users, {len(queries)} queries, {seconds:g} s after {ramp_s:g} s")
    print(f"replayed {done / seconds:.6g} executions per second")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    reads = verbs.add_parser("collect", help="print the heaviest queries as JSON")
    reads.add_argument("--top", type=int, default=20, help="how many queries (20)")
    reads.add_argument("--writes", action="store_true", help="also queries that write: on a clone only")
    runs = verbs.add_parser("run", help="replay them and print the figure")
    runs.add_argument("queries", help="what collect printed")
    runs.add_argument("--users", type=int, default=8, help="connections at once (8)")
    runs.add_argument("--ramp", type=float, default=5, help="seconds before counting (5)")
    runs.add_argument("--seconds", type=float, default=60, help="seconds that count (60)")
    asked = parser.parse_args()
    if "REPLAY_CONNECTION" not in os.environ:
        parser.error("REPLAY_CONNECTION is not set: it is the ODBC connection string, with DATABASE=")
    if asked.verb == "collect":
        collect(asked.top, asked.writes)
    else:
        run(asked.queries, asked.users, asked.ramp, asked.seconds)


if __name__ == "__main__":
    main()
