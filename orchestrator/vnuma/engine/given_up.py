"""When a cell without a result is given up, and what another attempt would only repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vnuma.domain.study import Study
from vnuma.engine.somebody import SomebodysChange
from vnuma.errors import QuestionPending, ShutdownTimeout
from vnuma.store.rows import AttemptLine
from vnuma.store.states import Outcome

_WITHOUT_RESULT = frozenset({Outcome.FAILED, Outcome.INVALID})


FOR_PEOPLE = {
    ShutdownTimeout.reason: "did not shut down",
    QuestionPending.reason: "waits for an answer in vCenter",
    SomebodysChange.reason: "was changed by somebody else",
}
"""Reasons of an attempt that another attempt would only repeat, with what they say of the VM."""


def failed_cells(past: Sequence[AttemptLine], study: Study) -> set[int]:
    """Cells that have used up their attempts without a valid one."""
    tries = Counter(attempt.cell_id for attempt in past if without_result(attempt))
    valid = {attempt.cell_id for attempt in past if attempt.outcome is Outcome.VALID}
    return {
        cell for cell, count in tries.items() if cell not in valid and count >= study.limits.attempts_per_cell
    }


def without_result(attempt: AttemptLine) -> bool:
    """Did it use up one of its cell's attempts for nothing? An interrupted one did not."""
    return attempt.outcome in _WITHOUT_RESULT
