"""Which failures another attempt would only repeat, and which need a person first."""

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
"""Reasons of an attempt that another attempt would only repeat, with what they say of the VM: it is left
as it is."""


def permanent_failure(past: Sequence[AttemptLine]) -> AttemptLine | None:
    """The latest of a VM's attempts, if any other would end as it did; None if it did not end so.

    It binds whoever holds the VM with that attempt's token: who takes the VM over later tries again.
    """
    latest = max(past, key=lambda attempt: attempt.id, default=None)
    return latest if latest and _lasts(latest) else None


def without_result(attempt: AttemptLine) -> bool:
    """Did it end without what its cell needs? An interrupted one was not let end."""
    return attempt.outcome in _WITHOUT_RESULT


def needs_a_person(attempt: AttemptLine) -> bool:
    """Whether a person has to act before another attempt at its cell makes sense."""
    return without_result(attempt) and (attempt.reason in NEEDS_A_PERSON or _lasts(attempt))


def _lasts(attempt: AttemptLine) -> bool:
    return without_result(attempt) and attempt.reason in PERMANENT
