"""Scripts of the user's own: variables and batches, as sqlcmd reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.errors import InputError
from vnuma.workloads.sql_script.workload import batches, replaced

BATCH = st.text(alphabet="abc '\n;-", min_size=1).filter(lambda text: bool(text.strip()))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "SELECT 1 AS go\ngo\n  GO 2 \nSELECT 2;\nGo -- next\n\nSELECT 3 GO\n",
            ["SELECT 1 AS go", "SELECT 2;", "SELECT 3 GO"],
        ),
        ("INSERT t VALUES (1)\nGO 3\nSELECT 1", ["INSERT t VALUES (1)"] * 3 + ["SELECT 1"]),
        ("\ufeffSELECT 1\r\nGO\r\nSELECT 2\r\nGO 2\r\n", ["SELECT 1", "SELECT 2", "SELECT 2"]),
    ],
    ids=["any case", "count", "Windows"],
)
def test_lines_that_say_go_end_batches(script: str, expected: list[str]) -> None:
    """With a count they repeat it, as in sqlcmd. A GO inside a line is a word like any other."""
    assert list(batches(script)) == expected


@given(parts=st.lists(BATCH, min_size=1))
def test_splitting_what_was_joined_gives_the_batches_back(parts: list[str]) -> None:
    """Nothing is lost, nothing added, whatever they contain."""
    assert list(batches("\nGO\n".join(parts))) == [part.strip() for part in parts]


def test_variables_are_replaced_as_text() -> None:
    """Everywhere, inside literals too; a name that is longer is another one."""
    text = "SELECT TOP ($(size)) N'$(region)' FROM $(region)_$(regions)"

    assert replaced(text, {"size": 5, "region": "EU", "regions": 2.5}) == "SELECT TOP (5) N'EU' FROM EU_2.5"


def test_a_variable_without_a_value_is_refused() -> None:
    """Sent unchanged it would be an obscure syntax error."""
    with pytest.raises(InputError):
        replaced("SELECT $(size)", {})
