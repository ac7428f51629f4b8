"""A study's design as plans print it."""

from __future__ import annotations

import pytest

from tests.support.studies import GOOD
from vnuma.cli.design_lines import design_lines
from vnuma.domain.study.study_file import parse_study

SCRIPT = "workload: {name: sql_script, statements: {rows: SELECT 1 AS n}}\n"


@pytest.mark.parametrize(("workload", "beside"), [("", "A/A, sentinel"), (SCRIPT, "A/A")])
def test_a_sentinel_is_announced_where_the_workload_has_one(workload: str, beside: str) -> None:
    """The user's own data are unknown, so no query of ours can watch the host there."""
    lines = design_lines(parse_study(GOOD + workload, "a.yml"))

    assert lines[0].endswith(f"; {beside}")
