"""How the timed executions ran, in words."""

from __future__ import annotations

import pytest

from vnuma.report.model.executions import FormExecutions


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"page_lookups": {"local": 7}, "streams": 32}, "clock: the workload's own, on SQL Server"),
        ({"clock": "messages", "node_id": 0}, "clock: SET STATISTICS TIME, whole ms; SQL node 0"),
    ],
)
def test_what_a_workload_does_not_tell_has_no_words(known: dict[str, object], words: str) -> None:
    """One that times streams or calls names neither one of SQL Server's clocks nor a node."""
    found = FormExecutions("sql16", "report")

    found.add(known, 3)

    assert found.words.startswith(words)
    assert "None" not in found.words
    assert not found.words.endswith("node ")
