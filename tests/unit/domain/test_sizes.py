"""A size in words."""

from __future__ import annotations

import pytest

from vnuma.domain.workloads.metric import in_table, sized


@pytest.mark.parametrize(
    ("size", "word", "words"),
    [
        (500, "rows a side", "500 rows a side"),
        (1, "rows a side", "1 row a side"),
        (1, "connections", "1 connection"),
        (12_000, "inserts", "12,000 inserts"),
        (1, "vCPUs", "1 vCPU"),
        (1, "MB", "1 MB"),
        (1, "as size", "1 as size"),
    ],
)
def test_one_is_reported_in_the_singular(size: int, word: str, words: str) -> None:
    """Words that count nothing stay as they are."""
    assert sized(size, word) == words


@pytest.mark.parametrize(("size", "shown"), [(1, "1"), (9999, "9999"), (10_000, "10,000")])
def test_a_tables_first_column_parts_only_sizes_of_five_digits(size: int, shown: str) -> None:
    """The same in every table of a page."""
    assert in_table(size) == shown
