"""Which failures a further attempt would only repeat, and which need a person first."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.engine.lease.foreign_change_check import SomebodysChange
from vnuma.errors import QuestionPending, ShutdownTimeout
from vnuma.store.cells import PERMANENT
from vnuma.store.rows import AttemptLine
from vnuma.store.states import Outcome

_WITHOUT_RESULT = frozenset({Outcome.FAILED, Outcome.INVALID})


NEEDS_A_PERSON = {
    ShutdownTimeout.reason: "did not shut down",
    QuestionPending.reason: "waits for an answer in vCenter",
    SomebodysChange.reason: "was changed by somebody else",
}
"""Reasons of failures that a further attempt would repeat, with what they mean for the VM, which is left as
it is.
"""


def permanent_failure(past: Sequence[AttemptLine]) -> AttemptLine | None:
    """The VM's latest attempt if any further one would fail alike; else None.

    Applies to the holder of that attempt's token: a later one tries again.
    """
    latest = max(past, key=lambda attempt: attempt.id, default=None)
    return latest if latest and _lasts(latest) else None


def without_result(attempt: AttemptLine) -> bool:
    """Whether it ended without what its cell needs; an interrupted attempt did not end."""
    return attempt.outcome in _WITHOUT_RESULT


def needs_a_person(attempt: AttemptLine) -> bool:
    """Whether a person has to act before a further attempt makes sense."""
    return without_result(attempt) and (attempt.reason in NEEDS_A_PERSON or _lasts(attempt))


def _lasts(attempt: AttemptLine) -> bool:
    return without_result(attempt) and attempt.reason in PERMANENT
