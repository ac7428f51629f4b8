"""The dataset's statements."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vnuma.sqlserver.database import dataset_sql as sql
from vnuma.sqlserver.database.dataset_sql import SALES_ORDER_DETAIL, TABLES, TRANSACTION_HISTORY, Table


@given(rows=st.integers(1, 1_000_000), table=st.sampled_from(TABLES))
@example(rows=200_000, table=TRANSACTION_HISTORY)
def test_chunks_cover_every_row_number_once(rows: int, table: Table) -> None:
    """Each INSERT counts 100,000 numbers on from its offset, and all stop at the same bound."""
    statements = list(sql.generate(table, rows))
    offsets = [int(found[1]) for text in statements if (found := re.search(r"SELECT (\d+) \+ a\.d", text))]

    assert offsets == list(range(0, rows, sql.CHUNK_ROWS))
    assert all(text.endswith(f"FROM number WHERE n < {rows}") for text in statements)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_copying_statement_names_another_database_and_a_memory_optimised_table(table: Table) -> None:
    """SQL Server refuses that with message 41317: hence the staging table."""
    first, second = sql.stage(table, "AdventureWorks2019"), sql.unstage(table)

    assert "[AdventureWorks2019]" in first
    assert f"INTO {sql.STAGING} " in first
    assert "[" not in second
    assert second.endswith(f"FROM {sql.STAGING}")


@pytest.mark.parametrize(("table", "columns"), [(TRANSACTION_HISTORY, 9), (SALES_ORDER_DETAIL, 11)])
def test_tables_have_adventureworks_columns_and_an_ordered_key(table: Table, columns: int) -> None:
    """TOP (n) ... ORDER BY key needs no sort with a nonclustered (not hash) key."""
    text = sql.create_table(table)

    assert len(table.columns) == columns
    assert "PRIMARY KEY NONCLUSTERED" in text
    assert "HASH" not in text
    assert text.endswith("WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_AND_DATA)")


def test_query_store_is_switched_off_only_where_it_exists() -> None:
    """SQL Server 2014 does not know the word."""
    switched = [any("QUERY_STORE = OFF" in text for text in sql.create_database("x", n)) for n in (12, 13)]
    assert switched == [False, True]


@given(st.text(min_size=1, max_size=40))
def test_names_and_literals_cannot_break_out(text: str) -> None:
    """Each closing bracket and each quote is doubled, and nothing else is changed."""
    assert sql.identifier(text) == "[" + text.replace("]", "]]") + "]"
    assert sql.literal(text) == "N'" + text.replace("'", "''") + "'"
