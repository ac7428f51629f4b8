"""What a study may say of the reporting streams."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vnuma.workloads.reporting_streams.settings import SEARCH, ReportingStreams
from vnuma.workloads.reporting_streams.tran_stats import REPORT, groups, statements


def test_a_search_tries_every_number_of_streams_and_warns_of_its_maximum() -> None:
    """A fixed number has nothing to warn of."""
    search = ReportingStreams.model_validate({"streams": "search"})
    assert search.sizes == SEARCH
    assert search.caution() is not None
    assert ReportingStreams().caution() is None


def test_the_hint_that_is_reported_is_the_querys() -> None:
    """Plan and report tell the MAXDOP that the query has, not the server's own."""
    assert REPORT.endswith(f"OPTION (MAXDOP {ReportingStreams().maxdop_hint})")


@pytest.mark.parametrize(
    "bad", [{"scale_factor": 0}, {"placement": "near"}, {"ports": [50001]}, {"sizes": []}]
)
def test_settings_without_a_meaning_are_refused(bad: dict[str, object]) -> None:
    """Before anything is touched."""
    with pytest.raises(ValidationError):
        ReportingStreams.model_validate(bad)


@given(st.integers(600, 1_000_000_000))
def test_the_table_is_made_of_exactly_the_rows_asked_for(rows: int) -> None:
    """Blocks of 10,000 numbers, the last one cut; the query then has its 600 groups."""
    (made,) = [text for text in statements(rows) if "INTO dbo.tran_stats" in text]
    blocks = -(-rows // 10_000)
    assert f"WHERE n < {blocks})" in made
    assert f"a.n * 10000 + b.n < {rows})" in made
    assert groups(rows) == 600
