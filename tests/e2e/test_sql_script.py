"""The user's own T-SQL as a workload: set up, checked, timed, torn down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from vnuma.engine.access.connections import sql_server
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.query import value
from vnuma.store.rows import Sample

SETUP = """
IF OBJECT_ID(N'dbo.pairs', N'U') IS NOT NULL DROP TABLE dbo.pairs
GO
CREATE TABLE dbo.pairs (n int NOT NULL PRIMARY KEY, half int NOT NULL)
GO
INSERT INTO dbo.pairs (n, half) SELECT v.n, v.n / 2 FROM (VALUES (1), (2), (3), (4), (5), (6)) AS v (n)
"""
SCRIPT: dict[str, Any] = {
    "name": "sql_script",
    "setup": SETUP,
    "statements": {
        "rows": "SELECT n, half FROM dbo.pairs WHERE n <= $(size)",
        "total": "SELECT COUNT_BIG(*) AS c, SUM(half) AS s FROM dbo.pairs WHERE n <= $(size) + $(more)",
    },
    "sizes": [2, 4],
    "parameters": {"more": 1},
    "teardown": "DROP TABLE dbo.pairs",
}


def study(**changes: Any) -> dict[str, Any]:
    """A study of the script, one cell long."""
    return {"workload": SCRIPT | changes, "reference": "1x16", "arms": ["1x16"]}


def measured(steps: Steps) -> list[Sample]:
    """What the first cell stored."""
    steps.measure(steps.take())
    return [stored.sample for stored in steps.samples]


def table_left(steps: Steps) -> bool:
    """Whether the script's table is still there."""
    with connect(sql_server(steps.target), "vnuma_study") as connection:
        return value(connection, "SELECT OBJECT_ID(N'dbo.pairs', N'U') AS id") is not None


def test_every_statement_is_timed_in_every_size_and_its_rows_are_checked(
    tmp_path: Path, lab: LabFactory
) -> None:
    """Two statements, two sizes, two iterations: eight samples of the right rows; nothing is left."""
    steps = Steps.prepared(tmp_path / "a", lab("paper"), **study())

    found = measured(steps)

    rows = {(sample.form, sample.size): sample.rows for sample in found}
    assert rows == {("rows", 2): 2, ("rows", 4): 4, ("total", 2): 1, ("total", 4): 1}
    assert len(found) == 8
    assert all(sample.elapsed_ms is not None and sample.workload == "sql_script" for sample in found)
    assert not table_left(steps)
    assert {fact.key for fact in steps.facts("plan")} == {"rows", "total"}


def test_an_execution_that_does_other_work_is_a_failed_sample_and_the_teardown_still_runs(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The study expects three rows of a statement that gives two; a failing teardown is reported too."""
    teardown = f"{SCRIPT['teardown']}\nGO\nDROP TABLE dbo.nothing"
    steps = Steps.prepared(
        tmp_path / "a", lab("paper"), **study(expected_rows={"rows": 3}, teardown=teardown)
    )

    with pytest.raises(MeasurementFailed, match=r"2 rows instead of 3\. .*Batch 2 of workload\.teardown"):
        measured(steps)

    found = [stored.sample for stored in steps.samples]
    assert [(sample.form, sample.elapsed_ms) for sample in found] == [("rows", None)]
    assert not table_left(steps)


def test_what_the_first_execution_gave_every_later_one_has_to_give(tmp_path: Path, lab: LabFactory) -> None:
    """A statement that leaves other data behind does other work the next time."""
    alike: dict[str, Any] = {"sizes": [1], "plan": "off", "parameters": {}}
    shrinking = {"gone": "DELETE FROM dbo.pairs WHERE n IN (SELECT MIN(n) FROM dbo.pairs WHERE n <= 2)"}
    steps = Steps.prepared(tmp_path / "a", lab("paper"), **study(statements=shrinking, **alike))
    measured(steps)

    again = {"gone": "DELETE FROM dbo.pairs WHERE n <= 2"}
    other = Steps.prepared(tmp_path / "b", lab("paper"), **study(statements=again, **alike))
    with pytest.raises(MeasurementFailed):
        measured(other)


def test_a_batch_that_fails_names_itself(tmp_path: Path, lab: LabFactory) -> None:
    """Which batch of which part, and what SQL Server said."""
    steps = Steps.prepared(
        tmp_path / "a", lab("paper"), **study(setup="SELECT 1 AS one\nGO\nDROP TABLE dbo.nothing")
    )

    with pytest.raises(MeasurementFailed, match=r"Batch 2 of workload\.setup failed.*dbo\.nothing"):
        measured(steps)
