"""What a study file may say of the user's own T-SQL."""

from __future__ import annotations

import pytest

from tests.support.studies import GOOD
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.workloads.sql_script.settings import SqlScript


def script(fields: str) -> SqlScript:
    """A study's script, or the InputError that names what is wrong with it."""
    text = f"{GOOD}workload:\n  name: sql_script\n{fields}"
    found = parse_study(text, "a.yml").workload
    assert isinstance(found, SqlScript)
    return found


ROWS = "  statements: {rows: 'SELECT n FROM dbo.t'}\n"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ('  statements: {rows: "SELECT 1\\nGO\\nSELECT 2"}\n', "has a line that says GO"),
        ("  statements: {rows: '  '}\n", "it contains no statement"),
        ("  statements: {rows: dbo.close_month 3}\n  times: procedure\n", "'rows' has no EXEC"),
        (f"{ROWS}  parameters: {{hint: MAXDOP 4}}\n", "'hint' is never used"),
        (f"{ROWS}  parameters: {{from: 2026-01-01}}\n", "2026-01-01 is neither text nor a number in YAML"),
        (f"{ROWS}  parameters: {{flag: true}}\n", "true is neither text nor a number in YAML"),
        (f"{ROWS}  parameters: {{my-name: 1}}\n", "'my-name' is not a valid name"),
        (f"{ROWS}  expected_rows: {{rows: -1}}\n", "must be at least 0"),
        (f"{ROWS}  expected_rows: {{others: 1}}\n", "'others', which is not a statement"),
        (f"{ROWS}  setup: SELECT $(size)\n", r"\$\(size\) differs within a boot"),
    ],
)
def test_a_script_that_cannot_be_measured_is_refused_with_its_line(fields: str, said: str) -> None:
    """Before anything is connected to: a boot is an expensive way to find a typing error."""
    with pytest.raises(InputError, match=rf"^a\.yml:\d+: .*{said}"):
        script(fields)


def test_a_parameter_of_one_arm_alone_has_to_stand_in_that_arms_script() -> None:
    """Misspelt, it would make two names of one arm, and their difference a verdict on nothing."""
    own = "  - {topology: 2x8, name: hinted, workload: {parameters: {hint: a, hnt: b}}}\n"
    text = GOOD.replace("  - 2x8\n", own)
    text += "workload:\n  name: sql_script\n  parameters: {hint: c}\n"
    text += "  statements: {rows: SELECT '$(hint)' AS h}\n"

    with pytest.raises(InputError, match=r"^a\.yml:\d+: parameter 'hnt' is never used") as refused:
        parse_study(text, "a.yml")

    assert "'hint' is never used" not in str(refused.value)


def test_text_and_numbers_are_kept_as_they_are_written() -> None:
    """A country's code that looks like a truth value in older YAML is text."""
    found = script(f"{ROWS.replace('dbo.t', '$(a)$(b)$(c)')}  parameters: {{a: NO, b: 1, c: 2.5}}\n")

    assert dict(found.parameters) == {"a": "NO", "b": 1, "c": 2.5}


@pytest.mark.parametrize(
    ("statement", "unordered"),
    [
        ("SELECT TOP (5) a FROM t", True),
        ("SELECT TOP 5 a FROM t -- ORDER BY a", True),
        ("SELECT TOP 5 a FROM t /* ORDER\nBY a */ WHERE b = 'ORDER BY a'", True),
        ("SELECT top(5) a FROM t order\nby a", False),
        ("SELECT a AS [TOP (5)] FROM t", False),
        ("SELECT 'TOP (5)' AS it", False),
        ("SELECT STOP(1)", False),
    ],
)
def test_rows_taken_without_an_order_are_seen(statement: str, unordered: bool) -> None:
    """Comments, literals and quoted names are no code."""
    found = SqlScript(name="sql_script", statements={"a": statement})

    assert found.unordered_tops == (("a",) if unordered else ())
