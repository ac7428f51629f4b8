"""A study's design, and what it likely shows, as plans print it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.studies import GOOD, plan_of, study
from vnuma.cli.design_lines import design_lines
from vnuma.cli.plan_text import plan_text
from vnuma.domain.study.study_file import parse_study

SCRIPT = "workload: {name: sql_script, statements: {rows: SELECT 1 AS n}}\n"


@pytest.mark.parametrize(("workload", "beside"), [("", "A/A, sentinel"), (SCRIPT, "A/A")])
def test_a_sentinel_is_announced_where_the_workload_has_one(workload: str, beside: str) -> None:
    """The user's own data are unknown, so no query of ours can watch the host there."""
    lines = design_lines(parse_study(GOOD + workload, "a.yml"))

    assert lines[0].endswith(f"; {beside}")


def detects(**design: Any) -> str:
    """The plan's line about the effects that the design likely finds; empty if there is none."""
    planned = study(design=design)
    lines = plan_text(planned, "sql16", plan_of(planned), "vnuma run", checks=False).splitlines()
    return next((line for line in lines if line.startswith("Detects")), "")


def test_a_plan_promises_no_effect_in_fixed_order() -> None:
    """Its verdicts are withheld, whatever the blocks show."""
    assert detects(blocks=8, order="randomised")
    assert detects(blocks=8, order="fixed") == ""


@pytest.mark.parametrize("end", [{"max_hours": 5}, {"precision": 0.01, "max_blocks": 8}])
def test_an_effect_is_promised_on_all_blocks_where_a_rule_may_end_the_run_before(end: dict[str, Any]) -> None:
    """Fewer blocks show only larger effects."""
    assert ["8 blocks" in detects(**rule) for rule in (end, {"blocks": 8})] == [True, False]


@pytest.mark.parametrize(("workload", "shown"), [("cross_join", True), ("page_cache", False)])
def test_nodes_of_sql_server_are_shown_where_the_study_asks_one(workload: str, shown: bool) -> None:
    """A guest that is reached by its shell may have no SQL Server."""
    planned = study(workload={"name": workload})

    text = plan_text(planned, "guest", plan_of(planned), "vnuma run", checks=False)

    assert ("SQL nodes" in text) is shown
