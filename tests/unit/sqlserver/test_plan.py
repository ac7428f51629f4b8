"""What is read from a plan."""

from __future__ import annotations

import pytest

from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.instance.plan import parse_plan

PLAN = """<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan" Version="1.539">
<BatchSequence><Batch><Statements>
<StmtSimple StatementType="SELECT" QueryHash="0x01" QueryPlanHash="0xA1B2C3D4E5F60718">
<QueryPlan DegreeOfParallelism="1" CachedPlanSize="40">
<RelOp NodeId="0" PhysicalOp="Nested Loops" LogicalOp="Inner Join" EstimatedExecutionMode="Batch">
<RunTimeInformation><RunTimeCountersPerThread Thread="0" ActualRows="25" ActualExecutionMode="Row"/>
</RunTimeInformation>
<NestedLoops>
<RelOp NodeId="1" PhysicalOp="Top" LogicalOp="Top" EstimatedExecutionMode="Row"/>
<RelOp NodeId="3" PhysicalOp="Table Spool" LogicalOp="Lazy Spool" EstimatedExecutionMode="Row"/>
</NestedLoops></RelOp></QueryPlan></StmtSimple>
</Statements></Batch></BatchSequence></ShowPlanXML>"""


def test_hash_parallelism_modes_and_spools_are_read() -> None:
    """These decide whether two timings belong to the same plan, and what they really read."""
    facts = parse_plan(PLAN)

    assert facts.query_plan_hash == "0xA1B2C3D4E5F60718"
    assert facts.degree_of_parallelism == 1
    assert facts.operators == ("Nested Loops", "Top", "Table Spool")
    assert facts.spools == ("Table Spool (Lazy Spool)",)
    assert facts.spools
    assert facts.execution_modes == ("Row",), "as run, not as estimated"
    assert facts.xml == PLAN


def test_a_plan_without_a_spool_says_so() -> None:
    """The variant NO_PERFORMANCE_SPOOL is checked against the plan, not believed."""
    facts = parse_plan(PLAN.replace("Table Spool", "Index Scan").replace("Lazy Spool", "Index Scan"))

    assert not facts.spools


def test_a_plan_that_names_its_encoding_is_read() -> None:
    """SQL Server's files start with a declaration of UTF-16, although the driver hands over text."""
    assert parse_plan(f'\ufeff<?xml version="1.0" encoding="utf-16"?>{PLAN}').spools


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not xml",
        "<other/>",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """Broken XML or another document is not a plan."""
    with pytest.raises(MeasurementFailed):
        parse_plan(text)


@pytest.mark.parametrize(
    "declaration", ['<!DOCTYPE x [<!ENTITY a "aaaa">]>', '<!DOCTYPE x SYSTEM "file:///etc/hostname">']
)
def test_a_plan_that_declares_a_document_type_is_refused(declaration: str) -> None:
    """Entities are how XML attacks its reader; SQL Server never declares any."""
    with pytest.raises(MeasurementFailed):
        parse_plan(declaration + PLAN)
