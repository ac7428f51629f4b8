"""How the timed executions ran, in words."""

from __future__ import annotations

import re

import pytest

from vnuma.analysis.records import Series
from vnuma.report.model.executions import FormExecutions, read_again
from vnuma.store.timed import Timed
from vnuma.workloads.command.settings import Command


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
    assert not re.search(r"None|node $", found.words)


def test_a_figure_is_read_again_from_what_the_program_printed() -> None:
    """The stored number is not believed; without the figure in the output the iteration failed."""
    work = Command.model_validate(
        {
            "name": "command",
            "run": ["bench"],
            "figure": {"name": "calls", "unit": "1/s", "better": "higher", "regex": "tps = (.*)"},
        }
    )
    stored = Series("a", "a", 1, "vm", 1, "run", elapsed_ms=(1.0, 2.0, 3.0, 4.0), value=(5.0,) * 4)
    printed = ('{"stdout": "tps = 5"}', '{"stdout": "tps = 6"}', '{"stdout": "no"}', None)

    found = read_again(work, Timed(stored, (None,) * 4, printed))

    assert found == stored._replace(elapsed_ms=(1.0, 2.0), value=(5.0, 6.0))
