"""The actual plan of a statement, from one extra, untimed run."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from xml.parsers import expat

from vnuma.errors import MeasurementFailed, PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client.failures import failure
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import DeadlinePassed, each_result, open_cursor, run, run_all, where

_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"


@dataclass(frozen=True)
class PlanFacts:
    """A plan's properties that affect whether its timings are comparable.

    `spools` are operators that read rows back from tempdb: with one on the inner side, a join of
    memory-optimised tables reads worktable pages instead of the tables. `execution_modes` are `Row` and
    `Batch`, actual where the plan has them, else estimated.
    """

    query_hash: str
    query_plan_hash: str
    degree_of_parallelism: int | None
    execution_modes: tuple[str, ...]
    operators: tuple[str, ...]
    spools: tuple[str, ...]
    xml: str


def actual_plan(
    connection: pyodbc.Connection,
    statement: str,
    *,
    setup: Sequence[str] = (),
    cleanup: Sequence[str] = (),
    timeout_s: float = 3600,
) -> PlanFacts:
    """Run a statement once with SET STATISTICS XML on, discard its rows and parse its plan.

    Raises MeasurementFailed without a readable plan, PrivilegeMissing without SHOWPLAN, SqlFailed when the
    statement fails. Do not use the connection after SqlUnreachable or a missed deadline.
    """
    run_all(connection, setup)
    run(connection, "SET STATISTICS XML ON")
    try:
        text = _last_xml(connection, statement, timeout_s)
    except (SqlFailed, PrivilegeMissing):
        run(connection, "SET STATISTICS XML OFF")
        raise
    run(connection, "SET STATISTICS XML OFF")
    run_all(connection, cleanup)
    if text is None:
        raise MeasurementFailed(f"{where(connection)}: SQL Server sent no plan for the statement.")
    return parse_plan(text)


def _last_xml(connection: pyodbc.Connection, statement: str, timeout_s: float) -> str | None:
    """The plan, from the only row of the last result set."""
    found: str | None = None
    try:
        with open_cursor(connection, timeout_s) as cursor:
            cursor.execute(statement)
            for result in each_result(cursor):
                if len(result.columns) == 1 and "Showplan" in result.columns[0]:
                    rows = result.rows(1)
                    found = str(rows[0][0]) if rows else None
    except DeadlinePassed:
        raise MeasurementFailed(
            f"{where(connection)}: the statement gave no plan within {timeout_s:g} s."
        ) from None
    except pyodbc.Error as error:
        raise failure(error, connection) from error
    return found


def parse_plan(text: str) -> PlanFacts:
    """Parse ShowPlanXML. Raises MeasurementFailed for anything else."""
    root = _parse(text)
    statement = root.find(f".//{_NAMESPACE}StmtSimple")
    if statement is None:
        raise MeasurementFailed("The plan that SQL Server sent contains no statement.")
    plan = statement.find(f"{_NAMESPACE}QueryPlan")
    parallel = plan.get("DegreeOfParallelism") if plan is not None else None
    operators = list(statement.iter(f"{_NAMESPACE}RelOp"))
    return PlanFacts(
        query_hash=statement.get("QueryHash", ""),
        query_plan_hash=statement.get("QueryPlanHash", ""),
        degree_of_parallelism=int(parallel) if parallel is not None and parallel.isdecimal() else None,
        execution_modes=tuple(sorted({mode for operator in operators for mode in _modes(operator)})),
        operators=tuple(operator.get("PhysicalOp", "") for operator in operators),
        spools=tuple(_spool(operator) for operator in operators if "Spool" in operator.get("PhysicalOp", "")),
        xml=text,
    )


def _modes(operator: ElementTree.Element) -> set[str]:
    """Actual modes, if the operator has run-time counters; else estimated."""
    counters = operator.findall(f"{_NAMESPACE}RunTimeInformation/{_NAMESPACE}RunTimeCountersPerThread")
    actual = {mode for counter in counters if (mode := counter.get("ActualExecutionMode"))}
    estimated = operator.get("EstimatedExecutionMode")
    return actual or ({estimated} if estimated else set())


def _spool(operator: ElementTree.Element) -> str:
    """`Table Spool (Lazy Spool)`."""
    return f"{operator.get('PhysicalOp')} ({operator.get('LogicalOp', 'unknown')})"


def _parse(text: str) -> ElementTree.Element:
    """Parse without declarations: plans have none, and every attack on the parser needs one."""
    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = _refuse_declaration
    body = text.lstrip("\ufeff")
    try:
        guard.Parse(body, True)
        return ElementTree.fromstring(body)
    except (ElementTree.ParseError, expat.ExpatError, ValueError) as error:
        raise MeasurementFailed(f"The plan that SQL Server sent is not readable XML: {error}.") from error


def _refuse_declaration(name: str, *_others: object) -> None:
    raise ValueError(f"it declares a document type '{name}'")
