"""The cross join as text: forms, bounds, hints."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.workloads.metric import Metric
from vnuma.errors import InputError
from vnuma.workloads.cross_join.settings import CrossJoin
from vnuma.workloads.cross_join.workload import cross_join, cross_join_queries, refuse_too_large

FORMS = ("client", "server", "into")


@given(size=st.integers(1, 100_000), form=st.sampled_from(FORMS))
def test_both_sides_are_cut_to_the_size_in_key_order(size: int, form: str) -> None:
    """Each side is TOP (n) ordered by its key, and n x n rows are expected."""
    query = cross_join(size, form)  # type: ignore[arg-type]

    assert query.sql.count(f"TOP ({size})") == 2
    assert "ORDER BY TransactionID)" in query.sql
    assert "ORDER BY SalesOrderID, SalesOrderDetailID)" in query.sql
    assert query.expected_rows == size**2


@pytest.mark.parametrize(
    ("maxdop", "spool", "hints"),
    [
        (1, "allowed", " OPTION (MAXDOP 1)"),
        (4, "avoided", " OPTION (MAXDOP 4, NO_PERFORMANCE_SPOOL)"),
        (0, "avoided", " OPTION (NO_PERFORMANCE_SPOOL)"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_carries_the_same_hints(form: str, maxdop: int, spool: str, hints: str) -> None:
    """The degree of parallelism and the spool variant are stated on all three forms alike."""
    assert cross_join(10, form, maxdop=maxdop, spool=spool).sql.endswith(hints)  # type: ignore[arg-type]


def test_maxdop_zero_leaves_the_servers_own() -> None:
    """Without a hint there is no OPTION clause at all."""
    assert "OPTION" not in cross_join(10, "client", maxdop=0).sql


def test_the_server_form_returns_the_number_of_joined_rows_first() -> None:
    """The aggregate needs columns of both sides, and its first column proves n x n rows."""
    query = cross_join(500, "server")

    assert query.rows_from == "result"
    assert query.sql.startswith("SELECT COUNT_BIG(*) AS joined_rows, ")
    assert "CHECKSUM(a.TransactionID, b.SalesOrderDetailID)" in query.sql


def test_the_into_form_names_every_column_once() -> None:
    """A table cannot have a column twice, so the columns that both tables have get an alias."""
    columns = cross_join(3, "into").sql.split(" INTO ")[0].removeprefix("SELECT ").split(", ")
    names = [re.split(r" AS |\.", column)[-1] for column in columns]

    assert len(names) == 20
    assert len(set(names)) == 20


def test_the_into_form_removes_its_table_before_and_after() -> None:
    """A table left by an interrupted iteration does not make the next one fail."""
    query = cross_join(3, "into")

    assert [statement.split(" ")[0] for statement in query.setup] == ["IF"]
    assert query.cleanup == ("DROP TABLE #vnuma_cross",)


def test_a_study_runs_every_form_of_a_size_before_the_next_size() -> None:
    """The order is the study's: sizes, and within each its forms."""
    workload = CrossJoin(sizes=(500, 1000), forms=("client", "server"))

    assert [(query.size, query.form) for query in cross_join_queries(workload)] == [
        (500, "client"),
        (500, "server"),
        (1000, "client"),
        (1000, "server"),
    ]
    assert workload.size_label(1000) == "1,000 x 1,000"


def test_the_spool_variant_and_maxdop_come_from_the_study() -> None:
    """What the study says reaches the statement."""
    workload = CrossJoin(sizes=(5,), forms=("into",), maxdop=2, spool="avoided")

    assert cross_join_queries(workload)[0].sql.endswith("OPTION (MAXDOP 2, NO_PERFORMANCE_SPOOL)")


def test_a_size_beyond_the_smaller_table_is_refused() -> None:
    """TOP would silently give fewer rows than n x n."""
    workload = CrossJoin(sizes=(500, 3000))

    refuse_too_large(workload, 3000)
    with pytest.raises(InputError):
        refuse_too_large(workload, 2999)


def test_the_figure_is_milliseconds_and_less_is_better() -> None:
    """A workload declares unit and direction, so that a report need not guess."""
    metric = CrossJoin().metric("client")

    assert metric == Metric("elapsed time", "ms", "lower", "elapsed_ms")
    assert metric.direction == "lower is better"
