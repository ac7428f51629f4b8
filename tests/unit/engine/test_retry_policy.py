"""Which attempts end a VM's cells for now, and which a cell's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from vnuma.engine.run.next_cell import (
    NEEDS_A_PERSON,
    needs_a_person,
    permanent_failure,
)
from vnuma.errors import ToolsTimeout
from vnuma.store.cells import PERMANENT
from vnuma.store.rows import AttemptLine, Outcome

BEGAN = datetime(2026, 11, 17, 20, 45, tzinfo=UTC)
VALID = AttemptLine(1, 1, 1, "1x16", 1, 1, None, None, BEGAN, BEGAN, Outcome.VALID, None, token=1)

passing = st.sampled_from([ToolsTimeout.reason, "login_refused", "sql_failed"])
reasons = st.one_of(passing, st.sampled_from(sorted(PERMANENT)), st.sampled_from(sorted(NEEDS_A_PERSON)))


def ended(number: int, reason: str | None) -> AttemptLine:
    """The attempt of that number at one cell, which failed for this reason or, with none, was valid."""
    outcome = Outcome.FAILED if reason else Outcome.VALID
    return replace(VALID, id=number, number=number, outcome=outcome, reason=reason)


@given(st.lists(st.one_of(st.none(), reasons), min_size=1, max_size=12))
def test_only_the_latest_attempt_tells_what_lasts(past: list[str | None]) -> None:
    """One that was tried again since, whatever came of it, is over."""
    lines = [ended(number, reason) for number, reason in enumerate(past, start=1)]

    assert permanent_failure(lines) == (lines[-1] if past[-1] in PERMANENT else None)


def test_what_an_account_may_not_do_lasts_and_a_login_after_a_boot_may_pass() -> None:
    """A refusal of the account lasts; a first refusal of SQL Server's may come of the boot."""
    lasting = {"privilege_missing", "account_refused"}
    assert PERMANENT & {*lasting, "login_refused"} == lasting
    assert needs_a_person(ended(1, "privilege_missing"))
    assert not needs_a_person(ended(1, "login_refused"))
